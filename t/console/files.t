#!/usr/bin/perl

# Files of a sandbox, as people work with them in a real browser: open, edit,
# save; what somebody else wrote meanwhile; upload, rename, move, delete,
# versions; and files that are no text, or would do something if they were let.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use MIME::Base64 qw(decode_base64);
use Test::More;

use SandboxConsole;

my $c = SandboxConsole->new;
my $id = $c->sandbox('data-cleaning-7');
my $w = '/workspace';

$c->write($id, "$w/src/clean.py", <<'END');
"""Cleans the orders."""
import csv

def clean(rows):
    return [r for r in rows if r["total"] >= 0]
END
$c->write($id, "$w/src/clean.py", <<'END');
"""Cleans the orders."""
import csv
import sys

def clean(rows, least=0):
    return [r for r in rows if int(r["total"]) >= least]

if __name__ == "__main__":
    csv.writer(sys.stdout).writerows(clean(csv.DictReader(sys.stdin)))
END
$c->write($id, "$w/src/util/dates.py", "def iso(d):\n    return d.isoformat()\n");
$c->write($id, "$w/README.md", "# Orders\n\nCleans the orders of a day.\n");
$c->write($id, "$w/config.json", "{\n  \"least\": 0,\n  \"zone\": \"UTC\"\n}\n");
$c->write($id, "$w/notes.txt", "one\ntwo\n");
$c->write($id, "$w/old/report.csv", "a,b\n1,2\n");
$c->write($id, "$w/data.bin", join '', map { chr } 0 .. 255);
$c->write($id, "$w/chart.png", decode_base64(join '', <DATA>));
$c->write($id, "$w/windows.ini", "[a]\r\nx=1\n");
$c->command($id, "head -c 6000000 /dev/zero | tr '\\0' x > $w/large.log; mkdir $w/empty $w/odd; echo x > '$w/odd/back\\slash.txt'; echo x > '$w/odd/mo\$ney.txt';"
    . " printf '#!/bin/sh\\necho run\\n' > $w/run.sh; chmod 750 $w/run.sh");

# C129: names and texts of strangers
$c->write($id, "$w/odd/<img src=x onerror=alert(1)>.txt", "<script>document.title=1</script> \x1b]52;c;ZXZpbA==\x07\n");
$c->write($id, "$w/odd/\x{202e}gnp.exe", "x\n");

# one that stops while somebody edits there
my $stops = $c->sandbox('nightly-build');

$c->write($stops, "$w/plan.txt", "as it was\n");
$c->write($id, "$w/growing.log", "line 1\n");

my $other = $c->ask(POST => '/console/api/v1/tokens', json => { role => 'operator', actor => { id => 'somebody-else' } })->json->{token};

$c->fact(sandbox => $id, stops => $stops, other => $other);
$c->look('files');
$c->stop;

done_testing;

__DATA__
iVBORw0KGgoAAAANSUhEUgAAAKAAAABkCAYAAAABtjuPAAABTElEQVR42u3SwQ0AIAzDwA7DTOzM
VDAEn0IuEl+rMq4yMzMzMzMzMzMzMzMzM7NuG3Ptm8egCdAEaCZAE6CZAE2AZgI0AZoJkED+CCSQ
PwL5I5BA/gjkj0AC+SOQPwL5449A/gjkj78fBbpPgD5YgD7YfQL0wQL0we4ToA8WoA92nwB9sAB9
sPsE6L7OARLoPgG6T4AEuk+A7hMgge4TYPB93Xk+WIACFKAAfbAABShAAfpgAQrQfQL0wQIUoPsE
6IMFmB1gmkD+CBSgAAXIH4ECFKAA+SMQT4B4AhQgngDxBChAPAHiCVCAeALEE6APwRMg3rMBEogn
QDwBEognQDwBEognQDwBEognQDwBEognQDwBEognQDwBEognQDwBEognQDwB4uEJEE+AeHgCxBMg
Hp4A8QSIhydAPAHi4QkQT4B4eALEEyBeNu8ARlo1kJxZ4toAAAAASUVORK5CYII=
