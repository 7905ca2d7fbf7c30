/**
 * Prints the demo's output: headings, paragraphs, lines folded for a narrow terminal, and a closing
 * page that shows the remaining files and what to try next. That page also puts the files in place.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { type Line, wrapped } from '../../compose/output/text-style.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { enrolmentsPerSecond, type Stage } from './demo-platform.ts';
import type { Folder } from './demo-folder.ts';

const width = 96;

export function createPage({ print }: Shell) {
  const put = (text: string, indent = 0, hang = 0): void => {
    for (const line of wrapped(text, { indent, width, hang })) print(line);
  };
  return {
    title(text: string): void {
      print('');
      print(text);
      print('='.repeat(text.length));
    },
    say(...paragraphs: string[]): void {
      for (const text of paragraphs) {
        print('');
        put(text);
      }
    },
    command(text: string): void {
      print('');
      print(`$ ${text}`);
    },
    /** Prints lines; a sentence that is too long is folded and indented, a row of a table never. */
    lines(lines: readonly Line[]): void {
      for (const line of lines) {
        if (typeof line !== 'string') {
          print(line);
          continue;
        }
        const isTable = /\S {2,}\S/.test(line);
        const text = line.trimStart();
        if (isTable) print(line);
        else put(text, line.length - text.length, 4);
      }
    },
    item(subject: string, text: string): void {
      print(`  ${subject}`);
      put(text, 6);
    },
  };
}

export type DemoPage = ReturnType<typeof createPage>;

const key = 'key_demo';

/**
 * Writes the platform's state to a file, because the platform ends with this process, and prints
 * the closing page. Renames the snapshot and its list, which belong to that platform, so that the
 * next run starts with an empty one.
 */
export function leave(folder: Folder, { emulator }: Stage, page: DemoPage): void {
  const all = emulator.world.contacts().length + emulator.world.requests().length;
  writeFileSync(folder.state, `${JSON.stringify(emulator.world.state(all), null, 2)}\n`);
  for (const end of ['', '-memory', '-memory-key'])
    renameSync(folder.snapshot + end, folder.after + end);
  const { shown } = folder;
  const limits = `contacts.enrol=${enrolmentsPerSecond}/1 contacts.list=${enrolmentsPerSecond}/1`;
  page.title('What is left, and what to try next');
  page.say(`Everything lies in ${shown(folder.path)}:`);
  page.lines([
    '  mirror.yaml             the configuration, commented',
    '  people.csv, templates   the CRM, as act 2 left it',
    '  platform.json           the platform, as act 3 left it, with every request it was sent',
    '  after-the-demo.sqlite   the snapshot, with its memory and the key; put aside, because that platform',
    '                          ends with the demo',
  ]);
  page.say('A platform of your own, in one terminal:');
  page.command(`npx crm-mirror emulator --key ${key} --limit ${limits}`);
  page.say('In another one:');
  page.lines(['', `$ export PLATFORM_API_KEY=${key}`]);
  for (const command of ['check', 'plan', 'sync'])
    page.lines([`$ npx crm-mirror ${command} -c ${shown(folder.config)}`]);
  page.say('Then let a person leave, and see that the next sync does not opt them in again:');
  const body = JSON.stringify({ contact: 'ida.lindqvist@example.com', channel: 'ch_news' });
  page.command(`curl -d '${body}' \\`);
  page.lines(['    http://127.0.0.1:4010/_emulator/leave']);
  page.lines([`$ npx crm-mirror sync -c ${shown(folder.config)}`]);
}
