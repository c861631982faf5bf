/** A word for a shell, whatever is in it. */
export const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** Words as they would be typed. */
export const typed = (words: readonly string[]) => words.map((w) => (/^[\w@%+=:,./-]+$/.test(w) ? w : quoted(w))).join(' ');
