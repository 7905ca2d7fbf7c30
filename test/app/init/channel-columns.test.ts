/** Which channels of the platform are asked about, and with which columns. */
import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Flags, type Known, Undecided } from '../../../src/app/init/flags.ts';
import { propose } from '../../../src/app/init/propose.ts';
import { readSample } from '../../../src/app/init/read-sample.ts';
import { scratch } from '../../support/sources/source-reading.ts';

const platform = [
  { id: 'ch_news', name: 'Newsletter' },
  { id: 'ch_product', name: 'Product updates' },
];
const news = 'ch_news=Newsletter';
const both = [news, 'ch_product=Produktinfos'];

async function proposed(flags: Partial<Flags>, known: Partial<Known>) {
  const path = join(await scratch(), 'kunden.csv');
  const rows = ['1;ann@example.com;Ja;Nein;', '2;bob@example.com;Nein;Ja;Ja'];
  writeFileSync(path, ['Nr;E-Mail;Newsletter;Produktinfos;Werbesperre', ...rows, ''].join('\n'));
  utimesSync(path, new Date(0), new Date(0));
  const signal = new AbortController().signal;
  const sample = await readSample({ source: path, env: {}, signal });
  const all = { output: 'mirror.yaml', ...flags };
  try {
    const { channels } = propose(sample, all, { platform, asTheyAre: true, ...known });
    return { channels: channels.map(({ id, column }) => `${id}=${column.name}`) };
  } catch (error) {
    if (!(error instanceof Undecided)) throw error;
    return { question: error.question, fix: error.problems[0].fix };
  }
}

const leaving = (...ids: string[]) => ({ leftAlone: new Set(ids) });
const aboutProduct = { about: 'channels', among: ['Produktinfos'], channels: [news] };
const aboutFlag = { about: 'flag', column: { name: 'Produktinfos' }, channels: [news] };

test.each<[string, Partial<Flags>, Partial<Known>, object]>([
  ['one beside a matched one', {}, leaving(), { question: aboutProduct }],
  ['one beside a named one', { channel: [news] }, leaving(), { question: aboutProduct }],
  ['none that is left alone', {}, leaving('ch_product'), { question: aboutFlag }],
  ['none once each has a column', { channel: both }, leaving(), { channels: both }],
  [
    'all if no column is named like one',
    {},
    { ...leaving(), platform: [{ id: 'ch_offers', name: 'Offers' }] },
    { question: { about: 'channels', among: ['Newsletter', 'Produktinfos'], channels: [] } },
  ],
  [
    'all if the platform names none',
    {},
    { ...leaving(), platform: [] },
    { question: { about: 'channels', among: ['Newsletter', 'Produktinfos'], channels: [] } },
  ],
  [
    'none without a terminal: the flag names it',
    {},
    {},
    {
      question: aboutFlag,
      fix: expect.stringMatching(
        /or, if it is the consent to "ch_product", --channel "ch_news=Newsletter" "ch_product=Produktinfos"$/,
      ),
    },
  ],
])('a channel is asked about: %s', async (_, flags, known, expected) => {
  expect(await proposed(flags, known)).toMatchObject(expected);
});
