// What was dropped: files, and folders with what is in them.

export interface Dropped {
  file: File;
  /** Below the folder it goes to, with `/` between names. */
  name: string;
}

export const MOST_DROPPED = 2_000;

export const fromInput = (list: FileList): Dropped[] =>
  [...list].slice(0, MOST_DROPPED).map((file) => ({ file, name: file.webkitRelativePath || file.name }));

const entriesOf = (folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> => {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];

  // it gives a hundred at a time, and nothing at the end
  return new Promise((done, fail) => {
    const more = () => reader.readEntries((some) => {
      all.push(...some);
      if (some.length === 0 || all.length > MOST_DROPPED) done(all); else more();
    }, fail);

    more();
  });
};

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((done, fail) => entry.file(done, fail));

/** To be called while the event is handled: its data is gone later. */
export function fromDrop(data: DataTransfer): Promise<Dropped[]> {
  const roots = [...data.items].map((item) => item.webkitGetAsEntry()).filter((e) => e !== null);
  const plain = fromInput(data.files);

  return (async () => {
    if (roots.length === 0) {
      return plain;
    }

    const out: Dropped[] = [];
    const walk = async (entry: FileSystemEntry, above: string): Promise<void> => {
      if (out.length >= MOST_DROPPED) {
        return;
      }
      if (entry.isFile) {
        out.push({ file: await fileOf(entry as FileSystemFileEntry), name: above + entry.name });
        return;
      }
      for (const below of await entriesOf(entry as FileSystemDirectoryEntry)) {
        await walk(below, `${above}${entry.name}/`);
      }
    };

    for (const root of roots) {
      await walk(root, '');
    }

    return out;
  })();
}
