// What a paste may carry: text, tabs and line ends.  Other control characters
// would be keys that nobody has pressed, or end the marks that programs put
// around a paste.

const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

export const cleanPaste = (text: string): string => text.replace(/\r\n?/g, '\n').replace(CONTROL, '');

/** Lines; the end of the last one counts, since it runs what stands before it. */
export const pasteLines = (text: string): number => text.replace(/\n$/, '').split('\n').length;

/** Is it to be asked for?  One line without an end does nothing by itself. */
export const risky = (text: string): boolean => text.includes('\n') || text.length > 5_000;

export const oneLine = (text: string): string => text.trim().replace(/\s*\n\s*/g, ' ');
