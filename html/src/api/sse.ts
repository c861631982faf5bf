// text/event-stream, as the HTML standard reads it.

export interface EventSink {
  event(name: string, data: string, id: string | null): void;
  id(id: string): void;
  retry(ms: number): void;
}

export class EventParser {
  private rest = '';
  private name = '';
  private data: string[] = [];
  private lastId: string | null = null;

  constructor(private readonly sink: EventSink) {}

  /** Text as it came; events are given to the sink as soon as they are whole. */
  push(text: string): void {
    const all = this.rest + text;

    // a CR at the very end may be half of a line's end
    const held = all.endsWith('\r') ? 1 : 0;
    const lines = all.slice(0, all.length - held).split(/\r\n|\n|\r/);

    this.rest = lines.pop()! + (held ? '\r' : '');
    lines.forEach((line) => this.line(line));
  }

  private line(line: string) {
    if (line === '') {
      if (this.data.length > 0) {
        this.sink.event(this.name || 'message', this.data.join('\n'), this.lastId);
      }
      if (this.lastId !== null) {
        this.sink.id(this.lastId);
      }
      this.name = '';
      this.data = [];
      return;
    }

    const colon = line.indexOf(':');

    if (colon === 0) {
      return;
    }

    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');

    if (field === 'event') {
      this.name = value;
    } else if (field === 'data') {
      this.data.push(value);
    } else if (field === 'id' && !value.includes('\0')) {
      this.lastId = value;
    } else if (field === 'retry' && /^\d+$/.test(value)) {
      this.sink.retry(Number(value));
    }
  }
}
