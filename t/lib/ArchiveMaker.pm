package ArchiveMaker;

# Archives, well-formed ones and others, byte by byte: no tool would make most of
# them.

use strict;
use warnings;

use Compress::Zlib qw(crc32);
use Exporter qw(import);
use IO::Compress::Bzip2 qw(bzip2);
use IO::Compress::Gzip qw(gzip);
use IO::Compress::RawDeflate qw(rawdeflate);

our @EXPORT_OK = qw(zip tar member pax gz bz2 deflated);


sub gz { my ($data) = @_; gzip(\$data => \my $out, -Minimal => 1) or die; return $out }
sub bz2 { my ($data) = @_; bzip2(\$data => \my $out) or die; return $out }
sub deflated { my ($data) = @_; rawdeflate(\$data => \my $out) or die; return $out }


# A ZIP of members { name, data }.  What else may be said of one: deflate => 1;
# mode (Unix, with type); flags, method, crc, size, packed, extra, comment,
# offset for the directory; local => { the same, and skip: not in the file };
# hidden: not in the directory; bytes: what follows the header in place of the
# data; behind: what follows that; stream: sizes behind the data, 'bare' without
# a mark; zip64 => 1.  Of the whole: prefix, comment, gap (before the directory),
# tail, base (added to offsets), and whatever of the end: entries, size, offset.

sub zip {
    my ($members, %o) = @_;

    my ($out, $directory, $n) = ($o{prefix} // '', '', 0);
    my $base = $o{base} // 0;

    for my $m (@$members) {
        my $data = $m->{data} // '';
        my $method = $m->{method} // ($m->{deflate} ? 8 : 0);
        my $bytes = $m->{bytes} // ($method == 8 ? deflated($data) : $data);
        my $flags = ($m->{flags} // 0) | ($m->{stream} ? 8 : 0);

        my %central = (name => $m->{name}, flags => $flags, method => $method,
                       crc => crc32($data), size => length $data,
                       packed => length $bytes, extra => '');
        my %local = (%central, %{ $m->{local} // {} });
        @local{qw(crc size packed)} = (0, 0, 0) if $m->{stream} && !$m->{local};
        $local{extra} = $m->{extra} if defined $m->{extra} && !$m->{local};
        $central{$_} = $m->{$_} // $central{$_} for keys %central;

        my $at = length($out) + $base;
        $at = $m->{offset} if defined $m->{offset};

        if ($m->{zip64}) {
            $local{extra} .= pack 'vvQ<Q<', 1, 16, @local{qw(size packed)};
            @local{qw(size packed)} = (0xffffffff) x 2;
        }

        if (!$local{skip}) {
            $out .= pack 'a4vvvvvVVVvv', "PK\3\4", 20, $local{flags},
                $local{method}, 0, 0x21, $local{crc}, $local{packed},
                $local{size}, length $local{name}, length $local{extra};
            $out .= $local{name} . $local{extra} . $bytes;

            if ($m->{stream}) {
                $out .= "PK\7\10" if $m->{stream} ne 'bare';
                $out .= pack 'VVV', crc32($data), length $bytes, length $data;
            }

            $out .= $m->{behind} // '';
        }

        next if $m->{hidden};

        my $comment = $m->{comment} // '';
        $directory .= pack 'a4vvvvvvVVVvvvvvVV', "PK\1\2", 0x31e, 20,
            $central{flags}, $central{method}, 0, 0x21, $central{crc},
            $central{packed}, $central{size}, length $central{name},
            length $central{extra}, length $comment, 0, 0,
            ($m->{mode} // 0100644) << 16, $at;
        $directory .= $central{name} . $central{extra} . $comment;
        $n++;
    }

    $out .= $o{gap} // '';

    my $where = length($out) + $base;
    my $comment = $o{comment} // '';

    return $out . $directory . pack('a4vvvvVVv', "PK\5\6", $o{disk} // 0, 0,
        ($o{entries} // $n) x 2, $o{size} // length $directory,
        $o{offset} // $where, length $comment) . $comment . ($o{tail} // '');
}


# One header of a tar and its data: name, type ('0'), data, link, mode, size,
# prefix, magic, sum (of the header), pad.

sub member {
    my ($name, %o) = @_;

    my $data = $o{data} // '';
    my $size = $o{size} // length $data;

    my $head = pack 'a100a8a8a8a12a12A8a1a100a6a2a32a32a8a8a155a12',
        $name, sprintf('%07o', $o{mode} // 0644), ('0000000') x 2,
        $size =~ /^\d+$/ ? sprintf('%011o', $size) : $size, '00000000000', '',
        $o{type} // '0', $o{link} // '', $o{magic} // "ustar\0",
        defined $o{magic} ? '' : '00', '', '', '0000000', '0000000',
        $o{prefix} // '', '';

    my $sum = $o{sum} // unpack '%32C*', $head;
    substr($head, 148, 8) = sprintf "%06o\0 ", $sum;

    return $head . $data . "\0" x (-length($data) % 512);
}


# Records of pax: pax(path => ..., x => ...) as the data of a header 'x'.

sub pax {
    my ($out, %o) = ('', @_);

    for my $key (sort keys %o) {
        my $rest = " $key=$o{$key}\n";
        my $n = length $rest;

        1 while length($n . $rest) != $n && ($n = length($n . $rest));
        $out .= $n . $rest;
    }

    return member('./PaxHeaders/x', type => 'x', data => $out);
}


# Headers made by member() or pax(), and the end.

sub tar { return join('', @_) . "\0" x 1024 }

1;
