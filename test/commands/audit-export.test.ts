/** The export of the audit log: what it contains, and that it is verified alone. */
import { createHash, verify } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ann, calling, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

/** A mirror that has subscribed Ann and opted her out again: four entries. */
async function written(): Promise<Mirrored> {
  const world = await mirrored();
  for (const news of ['yes', 'no']) {
    world.people([{ email: ann, news }]);
    await world.call('sync');
  }
  return world;
}

describe('audit export', () => {
  test('contains what others need to verify the chain', async () => {
    const world = await written();
    const file = join(world.folder, 'log.jsonl');
    expect((await world.call('audit', 'export', '--output', file)).out).toContain('4 entries');
    let before = Buffer.alloc(32);
    for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
      const { seq, person, text, hash } = JSON.parse(line);
      const mark = person ? Buffer.from(person, 'hex') : Buffer.alloc(16);
      const parts = Buffer.concat([before, mark, Buffer.from(`${seq}\n${text}`)]);
      before = createHash('sha256').update(parts).digest();
      expect(before.toString('hex')).toBe(hash);
    }
    expect(before.equals(Buffer.alloc(32))).toBe(false);
  });

  test.each([[[]], [['--since', '2020-01-01']]])(
    'contains the signatures, so that the file alone is verified (%j)',
    async (since) => {
      const world = await written();
      const file = join(world.folder, 'log.jsonl');
      await world.call('audit', 'export', ...since, '--output', file);
      const verified = await calling(['audit', 'verify', '--file', file, '--json']);
      expect(verified).toMatchObject({ code: 0, json: { whole: true, signedUpTo: 4 } });
      const text = readFileSync(file, 'utf8');
      const [first = '', ...rest] = text.split('\n');
      const { checkpoint, seq, hash } = JSON.parse(rest[2] ?? '');
      const signed = `crm-mirror audit log ${checkpoint.log}\n${seq}\n${hash}\n${checkpoint.at}\n`;
      const signature = Buffer.from(checkpoint.signature, 'base64');
      expect(verify(null, Buffer.from(signed), checkpoint.publicKey, signature)).toBe(true);
      const refused = async (changed: string): Promise<string> => {
        writeFileSync(file, changed);
        const { code, out } = await calling(['audit', 'verify', '--file', file]);
        expect(code).toBe(1);
        return out;
      };
      expect(await refused(text.replace(String.raw`\"none\"`, String.raw`\"opt_in\"`))).toContain(
        'entry 2  this entry was changed',
      );
      expect(await refused(text.replace('"before":"none"', '"before":"opt_in"'))).toContain(
        'entry 2  the fields beside the text',
      );
      expect(await refused([first, ...rest.slice(1)].join('\n'))).toContain(
        'entry 2  this entry is',
      );
      const none = text.replaceAll(/"checkpoint":\{[^}]*\}/g, '"checkpoint":null');
      expect(await refused(none)).toContain('no valid signature is in the file');
    },
  );

  test('that begins later is verified from there on; a CSV cannot be', async () => {
    const world = await written();
    const file = join(world.folder, 'log.jsonl');
    const { out } = await world.call('audit', 'export');
    writeFileSync(file, `${out.split('\n').slice(2).join('\n')}\n`);
    const later = await calling(['audit', 'verify', '--file', file, '--json']);
    expect(later).toMatchObject({ code: 0, json: { first: 3, last: 4, entries: 2 } });
    const csv = join(world.folder, 'log.csv');
    await world.call('audit', 'export', '--format', 'csv', '--output', csv);
    const { code, err } = await calling(['audit', 'verify', '--file', csv]);
    expect(code).toBe(2);
    expect(err).toContain('line 1 is no entry of an export in JSON lines');
  });

  test('begins at a time', async () => {
    const world = await written();
    expect((await world.call('audit', 'export', '--since', '2999-01-01')).out).toBe('');
  });
});
