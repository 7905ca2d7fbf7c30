/** The export of the audit log: what it contains, and that it is verified alone. */
import { createHash, verify } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  ann,
  bob,
  calling,
  mirrored,
  type Mirrored,
  inAndOut,
} from '../support/commands/mirrored-contacts.ts';

/** A mirror with two writes of a plan that Ben approved. */
async function approved(): Promise<Mirrored> {
  const world = await mirrored({ lines: { guards: { optIns: { percent: 0, floor: 0 } } } });
  await world.call('backfill');
  world.people([ann, bob].map((email) => ({ email, news: 'yes', product: 'yes' })));
  const { plan } = (await world.call('sync', '--json')).json;
  await world.call('approve', plan, '--by', 'ben');
  await world.call('sync');
  return world;
}

describe('audit export', () => {
  test('contains what others need to verify the chain', async () => {
    const world = await inAndOut();
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
      const world = await inAndOut();
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

  test('is refused if a field that repeats another entry does not say what that entry says', async () => {
    const world = await approved();
    const file = join(world.folder, 'log.jsonl');
    const { out } = await world.call('audit', 'export');
    const lines = out.split('\n');
    const verified = async (text: string) => {
      writeFileSync(file, text);
      return calling(['audit', 'verify', '--file', file, '--json']);
    };
    expect(await verified(out)).toMatchObject({ code: 0, json: { faults: [], unchecked: 0 } });
    const at = lines.findIndex((line) => line.includes('"approvedBy":[{'));
    const fields = JSON.parse(lines[at] ?? '');
    const [approval] = fields.approvedBy;
    for (const [name, value] of [
      ['approvedBy', [{ ...approval, name: 'Max Muster' }]],
      ['approvedBy', [approval, approval]],
      ['approvedBy', []],
      ['after', 'opt_out'],
      ['run', { ...fields.run, by: 'schedule' }],
      ['run', null],
    ] as const) {
      const forged = JSON.stringify({ ...fields, [name]: value });
      const { code, json } = await verified(lines.with(at, forged).join('\n'));
      const what = expect.stringMatching(new RegExp(`^the fields beside the text .*: ${name}$`));
      expect({ name, code, faults: json.faults }).toEqual({
        name,
        code: 1,
        faults: [{ seq: fields.seq, what }],
      });
    }
  });

  test('that begins later counts what cannot be checked, and refuses what is wrong', async () => {
    const world = await approved();
    const file = join(world.folder, 'log.jsonl');
    const lines = (await world.call('audit', 'export')).out.split('\n');
    const at = lines.findIndex((line) => line.includes('"approvedBy":[{'));
    const verified = async (text: string, ...more: string[]) => {
      writeFileSync(file, text);
      return calling(['audit', 'verify', '--file', file, ...more]);
    };
    const later = lines.slice(at).join('\n');
    const { code, json } = await verified(later, '--json');
    expect({ code, unchecked: json.unchecked }).toEqual({ code: 0, unchecked: lines.length - at });
    expect((await verified(later)).out).toContain(
      `for ${lines.length - at} entries, run or approvedBy cannot be checked`,
    );
    const changed = await verified(later.replaceAll('"after":"opt_in"', '"after":"none"'));
    expect(changed).toMatchObject({ code: 1, out: expect.stringContaining(': after') });
    const since = lines.findIndex((line) => line.includes('"what":"approve"'));
    const withApproval = lines.slice(since).join('\n');
    expect((await verified(withApproval)).code).toBe(0);
    const renamed = withApproval.replaceAll(/("approvedBy":\[\{[^\]]*"name":")ben/g, '$1Max');
    expect(await verified(renamed)).toMatchObject({
      code: 1,
      out: expect.stringContaining(': approvedBy'),
    });
  });

  test('says that its end may be cut, unless the end is known from elsewhere', async () => {
    const world = await inAndOut();
    const file = join(world.folder, 'log.jsonl');
    const { head } = (await world.call('audit', 'verify', '--json')).json;
    const lines = (await world.call('audit', 'export')).out.split('\n');
    const verified = async (text: string, ...more: string[]) => {
      writeFileSync(file, text);
      return calling(['audit', 'verify', '--file', file, ...more]);
    };
    const cut = lines.slice(0, 2).join('\n');
    const whole = await verified(lines.join('\n'));
    expect(whole.out).toContain('does not tell what follows entry 4, or whether it was cut there');
    expect((await verified(lines.join('\n'), '--head', head)).out).toContain(
      'entry 4 is the one that --head names',
    );
    expect(await verified(cut, '--head', head)).toMatchObject({
      code: 1,
      out: expect.stringContaining('2 entries are missing, up to 4'),
    });
    const early = await verified(lines.slice(3).join('\n'), '--head', `1:${'0'.repeat(64)}`);
    expect(early).toMatchObject({ code: 1, out: expect.stringContaining('it proves nothing') });
    expect((await verified(cut, '--head', 'none')).code).toBe(2);
  });
});
