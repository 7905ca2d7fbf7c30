/**
 * Reads templates from a directory: `<key>.json`, `<key>.yaml` or `.yml`, or a folder `<key>/` with
 * `template.yaml` and, unless that file contains the content itself, `content.json`. Dotfiles,
 * other files, and folders with neither file are not templates and are ignored.
 *
 * A record contains the key, the name (the key unless the file states one) and the fields that the
 * file states. A field that the file omits is not changed on the platform. A template that cannot
 * be read counts as broken, never as absent; examples are a broken link, two files with the same
 * key, and a syntax error. `fields` does not apply, because each file states its own fields.
 */
import { brokenFlaw, certificateOf, type Flaw } from '../shared/read-certificate.ts';
import type { Source, SourceRecord } from '../source.ts';
import { type Entry, listEntries, readingOf } from './directory-listing.ts';
import type { DirectoryOptions } from './options.ts';
import { readTemplate, type Stated } from './template-file.ts';

const BATCH_RECORDS = 20;

export function directorySource({ path }: DirectoryOptions): Source {
  return {
    async *read({ signal }) {
      signal.throwIfAborted();
      const entries = await listEntries(path);
      const reading = readingOf(entries);
      const broken: string[] = [];
      let batch: SourceRecord[] = [];
      for (const entry of entries) {
        signal.throwIfAborted();
        const sameKey = entries.filter((one) => one !== entry && one.key === entry.key);
        const others = sameKey.map(({ where }) => where).join(', ');
        const duplicate = sameKey.length > 0 && {
          where: entry.where,
          why: `the key ${JSON.stringify(entry.key)} is also that of ${others}`,
          fix: 'keep one of them, or rename the others',
        };
        const record = toRecord(entry, duplicate || (await readTemplate(entry, path)));
        if ('broken' in record) broken.push(record.where);
        batch.push(record);
        if (batch.length < BATCH_RECORDS) continue;
        yield batch;
        batch = [];
      }
      if (batch.length > 0) yield batch;
      signal.throwIfAborted();
      const flaws: Flaw[] = [];
      if (readingOf(await listEntries(path)) !== reading) {
        flaws.push({ why: 'the directory changed while it was read', fix: 'read it again' });
      }
      if (broken.length > 0) {
        const fix = 'mend what is broken';
        flaws.push(brokenFlaw('template', { count: broken.length, first: broken[0], fix }));
      }
      return certificateOf(reading, flaws);
    },
  };
}

function toRecord({ key, where }: Entry, stated: Stated): SourceRecord {
  if ('why' in stated) return { where: stated.where, broken: stated.why, fix: stated.fix };
  const { value } = stated;
  if ('key' in value && value['key'] !== key) {
    return {
      where,
      broken: `states a key, but the key is the name of the file: ${JSON.stringify(key)}`,
      fix: 'remove the key from the file, or rename the file',
    };
  }
  return { where, value: { name: key, ...value, key } };
}
