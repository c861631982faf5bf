package ArchiveCases;

# Archives that must not pass (field cases C091 to C100, and what can be made of
# them), and honest ones that must.  Each is { id, what, name, data } and, of
# those that must not, want: the words of the policy language that it deserves.

use strict;
use warnings;

use ArchiveMaker qw(zip tar member pax gz bz2 deflated);
use Exporter qw(import);
use SandboxTest ();

our @EXPORT_OK = qw(attacks twins uploader);

my $MIB = 1024 * 1024;

# names that lead out
my @CLIMBS = ('../x', '../../etc/passwd', '..', 'a/..', 'a/../..', 'a/../../x',
    './../x', '././../x', 'a//../../x', 'a/./../../x', '..//x', '/x',
    '//x', '/etc/passwd', '/../x', 'a/b/c/../../../../x', '.../../../x',
    'C:../../x', 'c:/x', 'C:x', 'C:\\x', '\\x', '\\\\?\\x', '..\\x',
    'a\\..\\..\\x', 'a\\b', "a/\xc0\xae\xc0\xae/x", "a\xff", "\xe2\x28\xa1/x",
    '../' x 30 . 'x', 'd/' x 20 . '../' x 21 . 'x');

# and some that do not
my @PLAIN = ('x', 'a/b/c', './a', '.', 'a/', 'a//b', '...', '.../x', '..a/b',
    'a../b', 'a..b', '.hidden', '-x', '$x', '~x', '~/x', 'a b', "a\tb", ':x',
    'ab:c', '%2e%2e/x', "\xc3\xbc/\xe4\xb8\xad", "e\xcc\x81", 'CON', 'x' x 100,
    'd/' x 40 . 'x', 'n' x 250);


# Ways to put one member of a name into a file.

sub containers {
    my ($name) = @_;

    my %m = (name => $name, data => 'hello');
    my $tar = tar(member($name, data => 'hello'));
    my $zip = zip([ { name => 'ok', data => 1 }, \%m ]);

    return (
        [ 'zip', 'x.zip', $zip ],
        [ 'deflated zip', 'x.zip', zip([ { %m, deflate => 1 } ]) ],
        [ 'streamed zip', 'x.zip', zip([ { %m, stream => 1 } ]) ],
        [ 'zip behind bytes', 'x.png',
          zip([ \%m ], prefix => "\x89PNG\r\n\x1a\n" . 'p' x 3000) ],
        length($name) <= 100 ? (
            [ 'tar', 'x.tar', tar(member('ok'), member($name, data => 'hello')) ],
            [ 'old tar', 'x.tar', tar(member($name, data => 'hello',
                                             magic => "\0" x 6)) ],
            [ 'tar.gz', 'x.tgz', gz($tar) ],
            [ 'tar.bz2', 'x.tar.bz2', bz2($tar) ],
            [ 'tar in zip', 'x.zip', zip([ { name => 't', data => $tar } ]) ],
            [ 'tar.gz in tar', 'x.tar', tar(member('t', data => gz($tar))) ],
        ) : (),
        [ 'GNU long name', 'x.tar',
          tar(member('././@LongLink', type => 'L', data => "$name\0"),
              member('short', data => 'hello')) ],
        [ 'pax path', 'x.tar', tar(pax(path => $name),
                                   member('short', data => 'hello')) ],
        [ 'zip in zip', 'x.zip', zip([ { name => 'i', data => $zip,
                                         deflate => 1 } ]) ],
        [ 'zip in tar.gz', 'x.tgz', gz(tar(member('i', data => $zip))) ],
        [ 'zip.gz', 'x.zip.gz', gz($zip) ],
        [ 'cpio', 'x.cpio', cpio($name, 'hello') ],
    );
}


sub cpio {
    my ($name, $data) = @_;

    my $one = sub {
        my ($n, $d, $mode) = @_;
        my $head = '070701' . join '', map { sprintf '%08x', $_ }
            1, $mode, 0, 0, 1, 0, length $d, 0, 0, 0, 0, 1 + length $n, 0;
        $head .= "$n\0";
        $head .= "\0" x (-length($head) % 4);
        return $head . $d . "\0" x (-length($d) % 4);
    };

    return $one->($name, $data, 0100644) . $one->('TRAILER!!!', '', 0);
}


# The lowest one of a tar with a link in it.

sub linked { tar(member('dir', type => 5), @_) }


sub attacks {
    my @all;
    my $add = sub {
        my ($id, $what, $name, $data, @want) = @_;
        push @all, { id => $id, what => $what, name => $name, data => $data,
                     want => \@want };
    };

    # --- names --------------------------------------------------------------------

    for my $climb (@CLIMBS) {
        my $shown = $climb =~ s/[^\x20-\x7e]/?/gr;
        $shown = substr($shown, 0, 20) . '...' if length $shown > 20;

        for (containers($climb)) {
            my ($how, $file, $data) = @$_;
            # a libarchive of its own mind writes "/" for "\" there
            $add->($climb =~ /[\\:]/ ? 'C098' : $how eq 'GNU long name' ? 'C096'
                   : 'C098', "$shown in $how", $file, $data, 'climbs');
        }
    }

    $add->('C096', 'a name of 300 bytes that ends badly', 'x.tar',
           tar(member('././@LongLink', type => 'L',
                      data => 'd/' x 145 . '../' x 150 . 'x' . "\0"),
               member('d/' x 49, data => 1)), 'climbs');
    $add->('C095', 'a prefix that climbs', 'x.tar',
           tar(member('x', prefix => '../..', data => 1)), 'climbs');
    $add->('C095', 'a full prefix that climbs', 'x.tar',
           tar(member('n' x 100, prefix => substr('../' . 'p/' x 80, 0, 154) . 'q',
                      data => 1)), 'climbs');
    $add->('C094', 'another name in UTF-8', 'x.zip',
           zip([ { name => 'ok', data => 1, extra => unicode('ok', '../../x') } ]),
           'climbs');
    $add->('C098', 'a NUL in a name', 'x.zip',
           zip([ { name => "ok\0/../x", data => 1 } ]), 'climbs');

    # --- C091: overlap ------------------------------------------------------------

    my $kernel = zip([ { name => 'k', data => 'k' x 100_000, deflate => 1 } ]);

    for my $n (2, 10, 250) {
        $add->('C091', "$n members that share one", 'x.zip',
               zip([ { name => 'a', data => 'k' x 100_000, deflate => 1 },
                     map { { name => "a$_", data => 'k' x 100_000, deflate => 1,
                             offset => 0, local => { skip => 1 } } } 2 .. $n ]),
               'inconsistent');
    }

    $add->('C091', 'one member inside of another', 'x.zip',
           zip([ { name => 'out', bytes => substr($kernel, 0, 300),
                   data => substr($kernel, 0, 300) },
                 { name => 'k', data => 'k' x 100_000, deflate => 1, offset => 33,
                   local => { skip => 1 } } ]), 'inconsistent');
    $add->('C091', 'a member that reaches into the directory', 'x.zip',
           zip([ { name => 'a', data => 'hello', packed => 60, size => 60,
                   local => { packed => 60, size => 60 } } ]), 'inconsistent');
    $add->('C091', 'a member behind the end', 'x.zip',
           zip([ { name => 'a', data => 'hello', offset => 5000 } ]),
           'inconsistent');
    $add->('C091', 'a member longer than the file', 'x.zip',
           zip([ { name => 'a', data => 'hello', packed => 1 << 30,
                   size => 1 << 30, local => { packed => 1 << 30,
                                               size => 1 << 30 } } ]),
           'inconsistent');

    # --- C094: directory and headers ------------------------------------------------

    my %two = (name => 'ok.txt', data => 'hello');

    for (['names differ', { name => '../x.t' }],
         ['names differ in case', { name => 'OK.txt' }],
         ['names differ in length', { name => 'ok.tx' }],
         ['sizes differ', { size => 4 }], ['packed sizes differ', { packed => 4 }],
         ['check sums differ', { crc => 7 }], ['methods differ', { method => 8 }],
         ['one is encrypted', { flags => 1 }])
    {
        my ($what, $local) = @$_;
        $add->('C094', $what, 'x.zip', zip([ { %two, local => $local } ]),
               'inconsistent');
    }

    for (['a member the directory has not', { %two, hidden => 1 }],
         ['a deflated one', { %two, hidden => 1, deflate => 1 }],
         ['a streamed one', { %two, hidden => 1, stream => 1 }])
    {
        my ($what, $hidden) = @$_;
        my %first = (name => 'first', data => 1);
        $add->('C094', "$what, first", 'x.zip', zip([ $hidden, \%first ]),
               'inconsistent');
        $add->('C094', "$what, last", 'x.zip', zip([ \%first, $hidden ]),
               'inconsistent');
        $add->('C094', "$what, between", 'x.zip',
               zip([ \%first, $hidden, { %first, name => 'last' } ]),
               'inconsistent');
        $add->('C094', "$what, far away", 'x.zip',
               zip([ { %first, behind => 'g' x 65520 }, $hidden ]),
               'inconsistent');
    }

    my $other = zip([ { name => '../../evil', data => 1 } ]);
    my $ok = zip([ \%two ]);

    $add->('C094', 'two ZIPs, one behind the other', 'x.zip',
           $other . zip([ \%two ], base => length $other), 'inconsistent');
    $add->('C094', 'two ZIPs whose second counts from its own beginning', 'x.zip',
           $other . $ok, 'inconsistent');
    $add->('C094', 'a comment that holds an end', 'x.zip',
           zip([ \%two ], comment => "PK\5\6" . "\0" x 18), 'inconsistent');
    $add->('C094', 'a comment that holds a ZIP', 'x.zip',
           zip([ \%two ], comment => $other), 'inconsistent');
    $add->('C094', 'an end within a comment, cut', 'x.zip',
           zip([ \%two ], comment => "xPK\5\6"), 'inconsistent');
    $add->('C094', 'bytes behind the end', 'x.zip', "${ok}x", 'inconsistent');
    $add->('C094', 'many bytes behind the end', 'x.zip', $ok . 'x' x 60_000,
           'inconsistent');
    $add->('C094', 'more members than there are', 'x.zip',
           zip([ \%two ], entries => 2), 'inconsistent');
    $add->('C094', 'fewer members than there are', 'x.zip',
           zip([ \%two, { %two, name => 'more' } ], entries => 1),
           'inconsistent');
    $add->('C094', 'one of several parts', 'x.zip', zip([ \%two ], disk => 1),
           'inconsistent');
    $add->('C094', 'two places for the directory', 'x.zip', two_directories(),
           'inconsistent');
    $add->('C094', 'a stored member with two sizes', 'x.zip',
           zip([ { %two, size => 9, local => { size => 9 } } ]), 'inconsistent');
    $add->('C094', 'a ZIP behind a tar', 'x.tar', tar(member('ok', data => 1)) . $ok,
           'inconsistent');
    $add->('C094', 'a ZIP behind a gzip', 'x.gz', gz('ok') . $ok, 'inconsistent');

    # --- C096: tars that others read on -----------------------------------------------

    $add->('C096', 'a wrong check sum', 'x.tar',
           tar(member('ok', data => 1), member('../x', sum => 1)), 'broken');
    $add->('C096', 'a wrong check sum first', 'x.tar', tar(member('x', sum => 1)),
           'broken');
    $add->('C096', 'a tar behind its end', 'x.tar',
           tar(member('ok')) . tar(member('../x')), 'inconsistent');
    $add->('C096', 'one far behind its end', 'x.tar',
           tar(member('ok')) . "\0" x 100_000 . 'x', 'inconsistent');
    $add->('C096', 'a tar behind its end in a gzip', 'x.tgz',
           gz(tar(member('ok')) . tar(member('../x'))), 'inconsistent');
    $add->('C096', 'a link with a long target', 'x.tar',
           tar(member('././@LongLink', type => 'K', data => '../' x 60 . "x\0"),
               member('l', type => 2, link => 'short')), 'escapes', 'links');
    $add->('C096', 'bytes behind a gzip', 'x.gz', gz('hello') . 'junk',
           'inconsistent');
    $add->('C096', 'a hidden gzip behind zeros', 'x.gz',
           gz('hello') . "\0" x 5000 . gz(tar(member('../x'))), 'inconsistent');

    # --- C097: links --------------------------------------------------------------------

    for my $to ('/', '/etc/passwd', '..', '../x', '../../x', 'a/..', 'a/../../x',
                './..', './/../x', 'dir/../x', '\\x', 'C:x', "\xff", '../' x 40)
    {
        my $shown = $to =~ s/[^\x20-\x7e]/?/gr;

        $add->('C097', "symbolic link to $shown", 'x.tar',
               linked(member('l', type => 2, link => $to)), 'escapes', 'links');
        $add->('C097', "hard link to $shown", 'x.tar',
               linked(member('l', type => 1, link => $to)), 'escapes', 'links');
        $add->('C097', "symbolic link to $shown in a ZIP", 'x.zip',
               zip([ { name => 'l', data => $to, mode => 0120777 } ]), 'links',
               $shown =~ /\\/ ? () : 'escapes');
        $add->('C097', "pax link to $shown", 'x.tgz',
               gz(linked(pax(linkpath => $to), member('l', type => 2,
                                                      link => 'ok'))),
               'escapes', 'links');
    }

    for (['hard link to nothing', [ 'h', type => 1, link => 'nothing' ]],
         ['hard link to what comes later', [ 'h', type => 1, link => 'f' ],
                                           [ 'f', data => 1 ]],
         ['hard link to a link', [ 'd/e/l', type => 2, link => '../../x' ],
                                 [ 'h', type => 1, link => 'd/e/l' ]],
         ['hard link to a directory', [ 'h', type => 1, link => 'dir' ]],
         ['file below a link', [ 'a', type => 2, link => 'dir' ],
                               [ 'a/x', data => 1 ]],
         ['link below a link', [ 'a', type => 2, link => '.' ],
                               [ 'a/b', type => 2, link => '..' ]],
         ['link above a file', [ 'a/x', data => 1 ],
                               [ 'a', type => 2, link => 'dir' ]],
         ['link, then a file of its name', [ 'a', type => 2, link => 'dir/x' ],
                                           [ 'a', data => 1 ]],
         ['the same, spelled otherwise', [ 'a', type => 2, link => 'dir/x' ],
                                         [ './/a', data => 1 ]],
         ['file far below a link', [ 'a/b', type => 2, link => '../dir' ],
                                   [ 'a/b/c/d/e', data => 1 ]],
         ['chain of links', [ 'a', type => 2, link => '.' ],
                            [ 'b', type => 2, link => 'a/..' ],
                            [ 'c', type => 2, link => 'b/x' ]])
    {
        my ($what, @members) = @$_;
        my $tar = linked(map { member(@$_) } @members);

        $add->('C097', $what, 'x.tar', $tar, 'escapes');
        $add->('C097', "$what in tar.gz", 'x.tgz', gz($tar), 'escapes');
        $add->('C097', "$what in a tar in a ZIP", 'x.zip',
               zip([ { name => 't', data => $tar, deflate => 1 } ]), 'escapes');
    }

    for (['dir/x', 'inside'], ['x/y/z', 'deep'], ['.', 'itself']) {
        my ($to, $what) = @$_;
        $add->('C097', "a symbolic link $what", 'x.tar',
               linked(member('l', type => 2, link => $to)), 'links');
        $add->('C097', "a symbolic link $what in a ZIP", 'x.zip',
               zip([ { name => 'l', data => $to, mode => 0120777 } ]), 'links');
    }

    $add->('C097', 'a hard link with data', 'x.tar',
           tar(pax(mtime => 1), member('f', data => 1), pax(mtime => 1),
               member('h', type => 1, link => 'f', data => 'hello')),
           'links', 'escapes');
    $add->('C097', 'a hard link with data that looks like a header', 'x.tar',
           tar(member('f', data => 1), member('h', type => 1, link => 'f',
                                              data => member('../x'))),
           'links', 'climbs');
    $add->('C097', 'a hard link to a file of it', 'x.tar',
           linked(member('f', data => 1), member('h', type => 1, link => 'f')),
           'links');

    # --- devices, modes, names that occur twice -----------------------------------------

    for ([3, 'character device'], [4, 'block device'], [6, 'FIFO']) {
        my ($type, $what) = @$_;
        my $tar = tar(member('d', type => $type));

        $add->('C097', "a $what", 'x.tar', $tar, 'devices');
        $add->('C097', "a $what in tar.bz2", 'x.tbz2', bz2($tar), 'devices');
        $add->('C097', "a $what in a ZIP", 'x.zip',
               zip([ { name => 'd', mode => { 3 => 020644, 4 => 060644,
                                              6 => 010644 }->{$type} } ]),
               'devices');
    }

    for my $mode (04755, 02755, 06777, 04000) {
        my $text = sprintf '%o', $mode;
        $add->('C097', "mode $text", 'x.tar', tar(member('s', mode => $mode)),
               'set-id');
        $add->('C097', "mode $text in a ZIP", 'x.zip',
               zip([ { name => 's', data => 1, mode => 0100000 | $mode } ]),
               'set-id');
        $add->('C097', "mode $text in tar.gz in tar", 'x.tar',
               tar(member('t', data => gz(tar(member('s', mode => $mode))))),
               'set-id');
    }

    for (['a', 'a'], ['a', './a'], ['a/b', 'a//b'], ['a', 'a/'], ['a/', 'a']) {
        my ($one, $two) = @$_;
        my @type = map { m{/$} ? 5 : 0 } $one, $two;

        $add->('C094', "$one and $two", 'x.tar',
               tar(member($one, type => $type[0]),
                   member($two, type => $type[1])), 'duplicates');
        $add->('C094', "$one and $two in a ZIP", 'x.zip',
               zip([ map { { name => $_, mode => m{/$} ? 040755 : 0100644 } }
                         $one, $two ]), 'duplicates');
    }

    # --- encrypted, unreadable ----------------------------------------------------------

    $add->('C094', 'an encrypted member', 'x.zip',
           zip([ { name => 's', data => 'x' x 30, flags => 1,
                   bytes => 'y' x 42 } ]), 'encrypted');
    $add->('C094', 'one of several encrypted', 'x.zip',
           zip([ { name => 'ok', data => 1 },
                 { name => 's', data => 'x' x 30, flags => 1,
                   bytes => 'y' x 42 } ]), 'encrypted');
    $add->('C097', 'an encrypted link', 'x.zip',
           zip([ { name => 'ok', data => 1 },
                 { name => 'l', data => 'ok', flags => 1, mode => 0120777 } ]),
           'encrypted', 'links', 'escapes');
    $add->('C091', 'a bomb: encrypted', 'x.zip',
           zip([ { name => 'z', data => "\0" x (8 * $MIB), deflate => 1,
                   flags => 1 } ]), 'encrypted', 'ratio');
    $add->('C100', 'a wrong check sum', 'x.zip',
           zip([ { name => 's', data => 'hello', crc => 5,
                   local => { crc => 5 } } ]), 'broken');
    $add->('C100', 'an unknown method', 'x.zip',
           zip([ { name => 's', data => 'hello', method => 19 } ]), 'broken');
    $add->('C100', 'bad deflated data', 'x.zip',
           zip([ { name => 's', data => 'hello' x 9, method => 8,
                   bytes => "\xff" x 20 } ]), 'broken');
    $add->('C100', 'a ZIP that ends in its middle', 'x.bin',
           substr($kernel, 0, 60), 'broken');
    $add->('C100', '7z without a rest', 'x.7z', "7z\xbc\xaf\x27\x1c\0\4" . 'x' x 40,
           'broken');
    $add->('C100', 'rar without a rest', 'x.rar', "Rar!\x1a\x07\0" . 'x' x 40,
           'broken');
    $add->('C100', 'xz without a rest', 'x.xz', "\xfd7zXZ\0" . 'x' x 40, 'broken');
    $add->('C099', 'a pax record with a wrong length', 'x.tar',
           tar(member('p', type => 'x', data => "9999999999 path=x\n"),
               member('ok')), 'broken');
    $add->('C099', 'a pax record without a length', 'x.tar',
           tar(member('p', type => 'x', data => "path=../x\n"), member('ok')),
           'broken');
    $add->('C099', 'pax records of 3 MiB', 'x.tgz',
           gz(tar(pax('SCHILY.xattr.user.x' => 'v' x (3 * $MIB)), member('ok'))),
           'broken');
    $add->('C096', 'a compress mark, a ZIP, and bytes behind it', 'x.bin',
           "\x1f\x9d$other" . 'x', 'inconsistent');

    my $cut = zip([ map { { name => "f$_", data => "hello $_" x 20 } } 1 .. 4 ]);

    for (my $n = 40; $n < length $cut; $n += 37) {
        $add->('C100', "a ZIP cut at $n", 'x.zip', substr($cut, 0, $n), 'broken');
    }

    $cut = gz(tar(member('ok', data => join ',', map { $_ * 7919 } 1 .. 800)));

    for (my $n = 20; $n < length $cut; $n += 97) {
        $add->('C100', "a tar.gz cut at $n", 'x.tgz', substr($cut, 0, $n),
               'broken');
    }

    # --- bombs ------------------------------------------------------------------------------

    my $zeros = "\0" x (8 * $MIB);
    my $bomb = gz($zeros);

    for (['gzip', 'x.gz', $bomb], ['bzip2', 'x.bz2', bz2($zeros)],
         ['tar.gz', 'x.tgz', gz(tar(member('z', data => $zeros)))],
         ['ZIP', 'x.zip', zip([ { name => 'z', data => $zeros,
                                  deflate => 1 } ])],
         ['several members', 'x.zip',
          zip([ map { { name => "z$_", data => "\0" x $MIB, deflate => 1 } }
                    1 .. 8 ])],
         ['gzip in ZIP', 'x.zip', zip([ { name => 'z', data => $bomb } ])],
         ['gzip in gzip', 'x.gz', gz($bomb)],
         ['ZIP in ZIP', 'x.zip', nested($zeros, 2)],
         ['ZIP in ZIP in ZIP', 'x.zip', nested($zeros, 3)],
         ['zeros behind a tar', 'x.tgz', gz(tar(member('ok')) . $zeros)])
    {
        my ($what, $name, $data) = @$_;
        $add->('C091', "a bomb: $what", $name, $data, 'ratio');
    }

    $add->('C091', 'more than 10000 members', 'x.tgz',
           gz(tar(map { member("f$_") } 1 .. 10_001)), 'entries');
    $add->('C091', 'more than 10000 members of a ZIP', 'x.zip',
           zip([ map { { name => "f$_" } } 1 .. 10_001 ]), 'entries');
    $add->('C091', 'a file that says to be of 1 TiB', 'x.tar',
           tar(member('big', size => 2 ** 32)), 'file_size');
    $add->('C091', 'ZIP in ZIP, six times', 'x.zip', nested('hello', 6), 'depth');
    $add->('C091', 'gzip in gzip, six times', 'x.gz', layers('hello', 6), 'depth');
    $add->('C091', 'gzip in gzip, thirty times', 'x.gz', layers('hello', 30),
           'broken');

    return @all;
}


# Info-ZIP's other name of a member.

sub unicode {
    my ($name, $other) = @_;

    return pack 'vvCVa*', 0x7075, 5 + length $other, 1,
                Compress::Zlib::crc32($name), $other;
}


sub nested {
    my ($data, $n) = @_;

    $data = zip([ { name => "n$_", data => $data, deflate => 1 } ]) for 1 .. $n;

    return $data;
}


sub layers {
    my ($data, $n) = @_;

    $data = gz($data) for 1 .. $n;

    return $data;
}


# A ZIP whose end says where a directory is, and another one stands where its
# length says.

sub two_directories {
    my $one = zip([ { name => 'ok', data => 1 } ]);
    my $two = zip([ { name => 'no', data => 2 } ]);
    my $at = unpack 'V', substr $one, -6, 4;
    my $size = unpack 'V', substr $one, -10, 4;
    my $base = $at + $size;
    my $second = substr $two, 0, length($two) - 22;

    # the second directory counts from the beginning, too
    substr($second, -4 - 2, 4) = pack 'V', $base;

    return substr($one, 0, $base) . $second
           . pack('a4vvvvVVv', "PK\5\6", 0, 0, 1, 1, $size, $at, 0);
}


sub twins {
    my @all;
    my $add = sub {
        my ($id, $what, $name, $data) = @_;
        push @all, { id => $id, what => $what, name => $name, data => $data };
    };

    for my $plain (@PLAIN) {
        my $shown = $plain =~ s/[^\x20-\x7e]/?/gr;
        $shown = substr($shown, 0, 20) . '...' if length $shown > 20;

        for (containers($plain)) {
            my ($how, $file, $data) = @$_;

            # "." is no name in a directory of files, and has no data
            next if $plain =~ m{^\.$|/$} && $how !~ /^(?:\w+ )?zip/;
            $add->('C098', "$shown in $how", $file, $data);
        }
    }

    my %one = (name => 'one', data => 'hello');
    my %two = (name => 'dir/two', data => 'world' x 50, deflate => 1);
    my @both = (\%one, \%two);

    # --- C092: honest archives called bombs ---------------------------------------

    $add->('C092', 'sizes behind the data', 'x.zip',
           zip([ map { { %$_, stream => 1 } } @both ]));
    $add->('C092', 'sizes behind the data, without a mark', 'x.zip',
           zip([ map { { %$_, stream => 'bare' } } @both ]));
    $add->('C092', 'zip64 in headers alone', 'x.zip',
           zip([ map { { %$_, zip64 => 1 } } @both ]));
    $add->('C092', 'behind a program', 'x.run',
           zip(\@both, prefix => "#!/bin/sh\nexit\n", base => 0));
    $add->('C092', 'behind a program that counts', 'x.exe',
           zip(\@both, prefix => 'MZ' . 'x' x 5000));
    $add->('C092', 'behind a program, counted from its own beginning', 'x.exe',
           'MZ' . 'x' x 5000 . zip(\@both));
    $add->('C092', 'the directory first', 'x.ja', directory_first());
    $add->('C092', 'aligned members', 'x.apk',
           zip([ map { { %$_, behind => "\0" x 11 } } @both ]));
    $add->('C092', 'a block before the directory', 'x.apk',
           zip(\@both, gap => 'APK Sig Block 42' x 20));
    $add->('C092', 'a comment', 'x.zip', zip(\@both, comment => 'PK made by me'));
    $add->('C092', 'comments of members', 'x.zip',
           zip([ { %one, comment => 'a comment' } ]));
    $add->('C092', 'no members', 'x.zip', zip([]));
    $add->('C092', 'no members, a comment', 'x.zip', zip([], comment => 'nothing'));
    $add->('C092', 'a ZIP as last member, stored', 'x.zip',
           zip([ \%one, { name => 'in.zip', data => zip(\@both) } ]));
    $add->('C092', 'a ZIP as last member, with a comment', 'x.zip',
           zip([ { name => 'in.zip', data => zip(\@both, comment => 'c' x 99) } ]));
    $add->('C092', 'directories', 'x.zip',
           zip([ { name => 'd/', mode => 040755 }, { name => 'd/x', data => 1 } ]));
    $add->('C092', 'the same name in UTF-8', 'x.zip',
           zip([ { name => 'ok', data => 1, extra => unicode('ok', 'ok') } ]));
    $add->('C092', 'many small members', 'x.zip',
           zip([ map { { name => "f$_", data => $_ } } 1 .. 3000 ]));
    $add->('C093', 'a small member and a larger one', 'x.zip',
           zip([ { name => 'a', data => 'x' },
                 { name => 'b', data => 'y' x 100 } ]));
    $add->('C093', 'a large member and a small one', 'x.zip',
           zip([ { name => 'b', data => join(',', 1 .. 50_000) },
                 { name => 'a', data => 'x' } ]));

    # --- C095, C096, C099: tars ------------------------------------------------------

    $add->('C095', 'a name of 100 bytes', 'x.tar',
           tar(member('n' x 100, data => 'hello')));
    $add->('C095', 'a prefix of 155 bytes', 'x.tar',
           tar(member('n' x 100, prefix => 'p' x 155, data => 'hello')));
    $add->('C095', 'a size of eleven digits', 'x.tar', tar(member('a', data => 1)));
    $add->('C096', 'a GNU name of 300 bytes', 'x.tar',
           tar(member('././@LongLink', type => 'L', data => 'n/' x 150 . "x\0"),
               member('n', data => 1)));
    $add->('C096', 'an old tar', 'x.tar', tar(member('a', data => 1,
                                                     magic => "\0" x 6)));
    $add->('C096', 'a GNU tar', 'x.tar', tar(member('a', data => 1,
                                                    magic => "ustar  \0")));
    $add->('C096', 'padded with 64 KiB', 'x.tar',
           tar(member('a', data => 1)) . "\0" x 65536);
    $add->('C096', 'without an end', 'x.tar', member('a', data => 1));
    $add->('C096', 'with one block of zeros', 'x.tar',
           member('a', data => 1) . "\0" x 512);
    $add->('C096', 'a ZIP as last member', 'x.tar',
           tar(member('in.zip', data => zip(\@both))));
    $add->('C096', 'a directory twice', 'x.tar',
           tar(member('d/', type => 5), member('d/a', data => 1),
               member('d/', type => 5)));
    $add->('C096', 'a global header', 'x.tar',
           tar(member('g', type => 'g', data => "20 comment=0123456\n\n"),
               member('a', data => 1)));
    $add->('C099', 'pax records of 500 KiB', 'x.tar',
           tar(pax('SCHILY.xattr.user.x' => 'v' x 512_000), member('a',
                                                                   data => 1)));
    $add->('C099', 'pax path, size and time', 'x.tar',
           tar(pax(path => 'p/' x 100 . 'x', mtime => '1.5'),
               member('a', data => 1)));

    # --- C100: told by content --------------------------------------------------------

    my $noise = join '', map { pack 'N', ($_ * 2654435761) % 2**32 } 1 .. 5000;

    $add->('C100', 'a ZIP named text', 'a.txt', zip(\@both));
    $add->('C100', 'a tar.gz named as a picture', 'a.png',
           gz(tar(member('a', data => 1))));
    $add->('C100', 'a document', 'a.docx',
           zip([ { name => '[Content_Types].xml', data => '<x/>', deflate => 1 },
                 { name => 'word/document.xml', data => '<w/>' x 99,
                   deflate => 1 } ]));
    $add->('C100', 'a jar', 'a.jar',
           zip([ { name => 'META-INF/MANIFEST.MF', data => "Manifest-Version: 1\n",
                   stream => 1, deflate => 1 } ]));
    $add->('C100', 'nothing, named as a ZIP', 'a.zip', '');
    $add->('C100', 'text, named as a ZIP', 'a.zip', "This is a text.\n");
    $add->('C100', 'noise, named as a tar', 'a.tar', $noise);
    $add->('C100', 'noise', 'a.bin', $noise x 5);
    $add->('C100', 'a text that begins like a bzip2', 'a.md', "BZh9 is a mark.\n");
    $add->('C100', 'a text that begins like a ZIP', 'a.md', "PK is short.\n");
    $add->('C100', 'source with the mark of an end', 'a.c',
           'static char end[] = "PK' . "\5\6" . '";' . "\n" . 'x' x 100);
    $add->('C100', 'digits like an old cpio', 'a.txt', "0707070707\n" x 9);
    $add->('C100', 'a compress mark and noise', 'a.bin', "\x1f\x9d$noise");
    $add->('C100', 'an lzma mark and noise', 'a.bin', "\x5d\0\0$noise");
    $add->('C100', 'gzip of a text', 'a.gz', gz("hello\n" x 100));
    $add->('C100', 'two gzips in one', 'a.gz', gz('hello') . gz('world'));
    $add->('C100', 'gzip and zeros', 'a.gz', gz('hello') . "\0" x 600);
    $add->('C100', 'an ar', 'a.deb', "!<arch>\n"
           . sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n", 'debian-binary', 0, 0, 0,
                     '100644', 4) . "2.0\n");

    # --- not quite bombs ----------------------------------------------------------------

    $add->('C091', '10000 members', 'x.tgz',
           gz(tar(map { member("f$_", data => $_ * 7919 % 1e6) } 1 .. 10_000)));
    $add->('C091', 'zeros of 1 MiB', 'x.gz', gz("\0" x $MIB));
    $add->('C091', 'ZIP in ZIP, four deep', 'x.zip', nested('hello', 4));
    $add->('C091', 'gzip in gzip, four deep', 'x.gz', layers('hello', 4));

    return @all;
}


# As Firefox has it: the directory in front of the members.

sub directory_first {
    my @m = map { [ "f$_", "data $_" ] } 1 .. 3;
    my $length = 0;
    $length += 46 + length $_->[0] for @m;

    my ($at, $out, $directory) = (4 + $length, '', '');

    for (@m) {
        my ($name, $data) = @$_;
        my $crc = Compress::Zlib::crc32($data);

        $directory .= pack('a4vvvvvvVVVvvvvvVV', "PK\1\2", 20, 20, 0, 0, 0, 0x21,
            $crc, (length $data) x 2, length $name, 0, 0, 0, 0, 0,
            $at + length $out) . $name;
        $out .= pack('a4vvvvvVVVvv', "PK\3\4", 20, 0, 0, 0, 0x21, $crc,
                     (length $data) x 2, length $name, 0) . $name . $data;
    }

    return "\0\0\0\0$directory$out" . pack 'a4vvvvVVv', "PK\5\6", 0, 0, (0 + @m) x 2,
           $length, 4, 0;
}

# What uploads one file after the other: code for (path, content).

sub uploader {
    my ($t, $execd) = @_;
    my ($conn, $n) = (undef, 0);

    return sub {
        my ($path, $data) = @_;

        # nginx closes a connection after 1000 requests
        $conn = $t->connect if $n++ % 500 == 0;

        return $t->post("$execd/files/upload", conn => $conn,
            body => SandboxTest::upload_body($path, $data),
            headers => [ 'Content-Type: multipart/form-data; boundary=B' ]);
    };
}

1;
