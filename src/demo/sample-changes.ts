/** The changes on both sides between the first run and the second. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Emulator } from '../emulator/emulator.ts';
import { writePeople, type Folder } from './demo-folder.ts';

/** Lets people and colleagues change things on the platform. */
export function changePlatform({ dashboard, world }: Emulator): void {
  dashboard.leave('clara.fischer@example.com', 'ch_news');
  dashboard.unsubscribe('david.cohen@example.org');
  dashboard.deleteContact('yuki.tanaka@example.net');
  const newsletter = world.templates().find(({ name }) => name === 'Monthly newsletter');
  if (!newsletter) throw new Error('the newsletter is not on the platform');
  dashboard.editTemplate(newsletter.id, { subject: 'Big news, {{firstName}}!' });
}

/** Changes the export and a template. */
export function changeCrm(folder: Folder): void {
  const [header = '', ...rows] = readFileSync(folder.people, 'utf8').split('\n');
  const columns = header.split(',');
  const consentAt = columns.indexOf('Newsletter consent');
  const withConsent = (row: string, consent: string): string =>
    row.split(',').with(consentAt, consent).join(',');

  for (const who of ['oscar.silva@example.com', 'rita.gomez@example.com', 'karl.weber@example.org'])
    rows.splice(rowOf(rows, who), 1);
  for (const [who, consent] of [
    ['anna.berg@example.org', 'No'],
    ['emil.jensen@example.com', 'Yes'],
  ] as const) {
    const at = rowOf(rows, who);
    rows[at] = withConsent(rows[at] ?? '', consent);
  }
  const newcomer = columns.with(0, '20999000111').with(3, 'zoe.laurent@example.com');
  const blank = newcomer.map((cell) => (columns.includes(cell) ? '' : cell));
  rows.unshift(withConsent(blank.join(','), 'Yes'));
  writePeople(folder, [header, ...rows].join('\n'));

  const invoice = join(folder.templates, 'invoice.yaml');
  const subject = 'subject: Invoice {{invoiceNumber}} for {{firstName}}';
  writeFileSync(invoice, readFileSync(invoice, 'utf8').replace(/^subject: .*$/m, subject));
}

/** Returns the row of a named person: a single line without quotes. */
function rowOf(rows: readonly string[], email: string): number {
  const at = rows.findIndex((row) => row.includes(`,${email},`) && !row.includes('"'));
  if (at >= 0) return at;
  throw new Error(`${email} is not in the sample export`);
}
