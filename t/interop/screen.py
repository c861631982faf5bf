"""The screen at the end of output: raw bytes, or asciicast (version 2 or 3)."""

import json
import sys

import pyte


class Screen(pyte.Screen):
    """pyte trips over CSI > m (vim asks for modifier keys by it)."""

    def select_graphic_rendition(self, *attrs, private=False):
        if not private:
            super().select_graphic_rendition(*attrs)


def main():
    how, path = sys.argv[1:3]
    cols, rows = int(sys.argv[3]), int(sys.argv[4])
    screen = Screen(cols, rows)

    if how == "raw":
        stream = pyte.ByteStream(screen)
        with open(path, "rb") as f:
            stream.feed(f.read())
    else:
        stream = pyte.Stream(screen)
        with open(path, encoding="utf-8") as f:
            next(f)
            for line in f:
                event = json.loads(line)
                if event[1] == "o":
                    stream.feed(event[2])

    colours = [
        (y, x, cell.fg, cell.bg, cell.bold)
        for y, line in sorted(screen.buffer.items())
        for x, cell in sorted(line.items())
        if (cell.fg, cell.bg, cell.bold) != ("default", "default", False)
    ]
    print(json.dumps([screen.display, [screen.cursor.x, screen.cursor.y], colours]))


main()
