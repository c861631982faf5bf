// NAME=VALUE, line by line, as people write variables, labels and the like.

/** The pairs; `wrong` is the number of the first line that is none. */
export function pairs(text: string, name = /^[^=\s][^=]*$/): { values: Record<string, string>; wrong: number | null } {
  const values: Record<string, string> = {};

  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() === '') {
      continue;
    }

    const at = line.indexOf('=');

    if (at < 1 || !name.test(line.slice(0, at))) {
      return { values, wrong: i + 1 };
    }
    values[line.slice(0, at)] = line.slice(at + 1);
  }

  return { values, wrong: null };
}
