"""The screen at the end of output: raw bytes, or asciicast (version 2 or 3)."""

import json
import sys

import pyte


class Screen(pyte.Screen):
    """pyte trips over CSI > m (vim asks for modifier keys by it)."""

    def select_graphic_rendition(self, *attrs, private=False):
        if not private:
            super().select_graphic_rendition(*attrs)


def resize(screen, size):
    cols, rows = size.split("x")
    screen.resize(int(rows), int(cols))


def main():
    """screen.py cast FILE | raw FILE [OFFSET:COLSxROWS ...]"""
    how, path = sys.argv[1:3]
    screen = Screen(80, 24)

    if how == "raw":
        stream = pyte.ByteStream(screen)
        with open(path, "rb") as f:
            for size in sys.argv[3:]:
                offset, cols_rows = size.split(":")
                stream.feed(f.read(int(offset) - f.tell()))
                resize(screen, cols_rows)
            stream.feed(f.read())
    else:
        stream = pyte.Stream(screen)
        with open(path, encoding="utf-8") as f:
            next(f)
            for line in f:
                event = json.loads(line)
                if event[1] == "o":
                    stream.feed(event[2])
                elif event[1] == "r":
                    resize(screen, event[2])

    colours = [
        (y, x, cell.fg, cell.bg, cell.bold)
        for y, line in sorted(screen.buffer.items())
        for x, cell in sorted(line.items())
        if (cell.fg, cell.bg, cell.bold) != ("default", "default", False)
    ]
    print(json.dumps([screen.display, [screen.cursor.x, screen.cursor.y], colours]))


main()
