/**
 * Every command, one row each, from which its help, completion, hand-over, console action and docs
 * are derived. The file of a command is loaded only when it is called.
 */
import type { CommandForm, CommandModule } from '../compose/process-shell.ts';

/** What the commands are for. The help lists those of every day one by one. */
export const tasks = {
  'every day': '',
  decide: 'say yes or no to changes that wait, whole or in part; take a run back',
  'first load and trials': 'load for the first time; try a run on copies',
  people: 'erase a person for good, or let one back in; who left; what is recorded',
  proof: 'what runs did, what was sent lately, who allowed it; a copy while running',
  operate: 'stop all runs, move to another URL or key, a browser, a test platform',
  platform: 'sending domains, one template to an address, API keys',
};
type Task = keyof typeof tasks;

interface Traits extends CommandForm {
  /** What the command is if it is given one of these options, such as `person` for --person. */
  forms?: readonly (CommandForm & { options: readonly string[] })[];
  /** Whether its results are for programs, like all JSON. */
  isData?: boolean;
  /** Whether only other programs call it. */
  isHidden?: boolean;
}
type Load = () => Promise<CommandModule>;
type Row = readonly [
  name: string,
  Task,
  Traits,
  load: Load | undefined,
  summary: string,
  /** What follows the name in the example of the help. */
  example?: string,
];

/** A command by the words after `crm-mirror`; a group of commands has no `load`. */
export interface CommandRow extends Traits {
  name: string;
  task: Task;
  summary: string;
  example: string | undefined;
  load: Load | undefined;
}

const reads: Traits = { effect: 'reads', where: 'here' };
const data: Traits = { ...reads, isData: true };
const steers: Traits = { effect: 'steers', where: 'beside' };
const steersHere: Traits = { effect: 'steers', where: 'here' };
const person: Traits = { effect: 'person', where: 'beside' };
const runs: Traits = { effect: 'run', where: 'alone' };
const serves: Traits = { effect: 'run', where: 'here' };

const syncs = async () => (await import('./sync.ts')).parts;
const erasures = async () => (await import('./forget.ts')).parts;
const resolutions = async () => (await import('./resolve.ts')).parts;
const audit = async () => (await import('./audit.ts')).parts;
const exported = async () => (await import('./export.ts')).parts;
const fleet = async () => (await import('./fleet.ts')).parts;
const decisions = async () => (await import('./approve.ts')).parts;
const print = async () => (await import('./completion/print.ts')).parts;
const platform = async () => (await import('./platform.ts')).parts;

// prettier-ignore
const rows: readonly Row[] = [
  ['demo', 'every day', reads, () => import('./demo.ts'), 'show a whole cycle on an emulator with sample data, explained'],
  ['init', 'every day', reads, () => import('./init.ts'), 'propose a configuration for an export, and write it',
    'people.csv'],
  ['check', 'every day', reads, () => import('./check.ts'), 'validate the configuration, reach the CRM and the platform'],
  ['plan', 'every day', reads, async () => (await syncs()).plan, 'show what a run would do, and send nothing; --out FILE keeps it',
    '--out plan.json'],
  ['sync', 'every day', { ...runs, forms: [{ ...runs, where: 'beside', options: ['person', 'id'] }] },
    async () => (await syncs()).sync, 'run once, for one person (--person WHO) or a kept plan (--plan FILE)',
    '--person ann@example.com'],
  ['worker', 'every day', serves, () => import('./worker.ts'), 'keep running, by schedule and by events; needs Redis'],
  ['status', 'every day', reads, () => import('./status.ts'), 'show what needs attention, what waits and until when, and the state'],
  ['explain', 'every day', reads, () => import('./explain.ts'), 'say what mail one person gets, and why; --output FILE signs it',
    'ann@example.com --output ann.html'],
  ['problems', 'every day', reads, () => import('./problems.ts'), 'list what needs somebody; --drift: what differs and no run mends',
    '--drift'],

  ['approve', 'decide', steers, async () => (await decisions()).approve, 'approve changes that await approval; the next runs make them',
    '539b73071770e947 --channel ch_news --op opt_in'],
  ['reject', 'decide', steers, async () => (await decisions()).reject, 'reject changes that await approval: no run makes them',
    '539b73071770e947 --reason "a wrong export"'],
  ['resolve', 'decide', person, async () => (await resolutions()).resolve, 'settle a conflict of one person, with reason and evidence; sends nothing',
    'ann@example.com --channel ch_news --out --reason "asked by phone" --evidence "ticket 42"'],
  ['retry', 'decide', { ...steers, forms: [{ ...person, options: ['read-again'] }] },
    async () => (await resolutions()).retry, 'let the next run try again what the platform refused, or read a person again',
    'ann@example.com'],
  ['undo', 'decide', { ...runs, forms: [{ ...reads, options: ['dry-run'] }] },
    async () => (await syncs()).undo, 'take back what an earlier run did, where that is still allowed',
    'last --dry-run'],
  ['unmanaged', 'decide', person, () => import('./unmanaged.ts'),
    'people deleted in the CRM, or left out, and subscribed without this mirror: opt out, or accept'],

  ['backfill', 'first load and trials', runs, async () => (await syncs()).backfill,
    'load for the first time: a full run with progress, resumable after any interruption'],
  ['rehearse', 'first load and trials', reads, () => import('./rehearse.ts'),
    'run on copies and an emulator of the platform: how long, and how it would end; sends nothing',
    '--fast --limit contacts.enrol=30/60'],

  ['forget', 'people', { ...person, isUrgent: true }, async () => (await erasures()).forget,
    'erase one person from the platform and the snapshot, for good',
    'ann@example.com'],
  ['allow', 'people', person, async () => (await erasures()).allow,
    'withdraw an erasure, and other entries of the do-not-contact list about a person',
    'ann@example.com --reason "asked to come back"'],
  ['optouts', 'people', data, async () => (await exported()).optouts, 'list people who unsubscribed on the platform, for the CRM; shows addresses',
    '--since 7d'],
  ['export', 'people', data, undefined, 'what is recorded of people and templates: a document each, CSV, or a table'],
  ['export people', 'people', data, async () => (await exported()).people, 'write what is recorded of people',
    '--format csv --output people.csv'],
  ['export templates', 'people', data, async () => (await exported()).templates, 'write what is recorded of templates'],

  ['runs', 'proof', reads, () => import('./runs.ts'), 'list the last runs, or show one of them with its changes'],
  ['audit', 'proof', reads, undefined, 'who allowed what and what was sent, for years: verify, show, export, requests'],
  ['audit verify', 'proof', reads, async () => (await audit()).verify, 'prove that no entry was changed, removed, added or moved'],
  ['audit show', 'proof', reads, async () => (await audit()).show, 'show every write about one person: why, who allowed it, and what came of it',
    'ann@example.com --since 7d'],
  ['audit export', 'proof', reads, async () => (await audit()).export, 'write the log for others, a line for each entry'],
  ['audit requests', 'proof', reads, async () => (await audit()).requests, 'list what was sent to the platform lately, and what it answered',
    '--person ann@example.com --failed'],
  ['backup', 'proof', reads, () => import('./backup.ts'), 'copy the snapshot and the memory, also while they are in use',
    'backup/acme.sqlite'],

  ['pause', 'operate', steersHere, async () => (await import('./pause.ts')).pause, 'begin no runs until `resume`; a run in progress goes on to its end',
    '--reason "CRM migration"'],
  ['resume', 'operate', steersHere, async () => (await import('./pause.ts')).resume, 'end a pause'],
  ['rebind', 'operate', { ...steers, where: 'alone' }, () => import('./rebind.ts'),
    'move the snapshot to another URL or key of the same organization, after proof'],
  ['fleet', 'operate', reads, undefined, 'the workers of a folder of mirrors, and what each of them serves'],
  ['fleet status', 'operate', reads, async () => (await fleet()).status, 'list the workers, what each of them serves, and mirrors that nobody serves'],
  ['fleet drain', 'operate', steersHere, async () => (await fleet()).drain, 'have a worker give all its mirrors away and take none, before it is stopped'],
  ['console', 'operate', serves, () => import('./console.ts'), 'look at mirrors in the browser, and act there'],
  ['notify', 'operate', reads, undefined, 'try the receivers of notifications'],
  ['notify test', 'operate', reads, async () => (await import('./notify.ts')).parts.test, 'send a test message to every receiver of `notices`'],
  ['emulator', 'operate', reads, () => import('./emulator.ts'), "the platform's API, locally"],
  ['print', 'operate', data, undefined, 'what editors and shells complete from: schema, completion'],
  ['print schema', 'operate', data, async () => (await print()).schema, 'print the JSON Schema of the configuration, for editors'],
  ['print completion', 'operate', data, async () => (await print()).completion,
    'print the script that completes commands and options in bash, zsh or fish',
    'bash'],
  ['complete', 'operate', { ...data, isHidden: true }, async () => (await print()).complete, 'complete a command line'],

  ['platform', 'platform', reads, undefined, "the rest of the platform's API: domains, template, key"],
  ['platform domains', 'platform', reads, undefined, 'list, create and verify sending domains, or see the nameservers of one'],
  ['platform domains list', 'platform', reads, async () => (await platform()).list, 'every domain and its status'],
  ['platform domains create', 'platform', steersHere, async () => (await platform()).create, 'add a domain; prints its DNS records',
    'news.example.com --click-tracking'],
  ['platform domains verify', 'platform', steersHere, async () => (await platform()).verify, 'have the DNS records of a domain looked at'],
  ['platform domains nameservers', 'platform', reads, async () => (await platform()).nameservers, 'who answers for a domain'],
  ['platform template', 'platform', steersHere, undefined, 'try a template as it is on the platform'],
  ['platform template test', 'platform', steersHere, async () => (await platform()).test, 'send one template to an address',
    'welcome --to ann@example.com'],
  ['platform key', 'platform', steersHere, undefined, 'API keys of the organization'],
  ['platform key enable', 'platform', steersHere, async () => (await platform()).enable,
    'switch an API key on; one that is on stays on'],
];

/** Every command, in the order of the help. */
export const commands = rows.map(([name, task, traits, ...more]): CommandRow => {
  const [load, summary, example] = more;
  return { name, task, ...traits, load, summary, example };
});

/** What `restore` is answered with: no command does it. */
export const restoredByHand =
  'restore is no command: stop what starts runs → copy the backup to the path of the snapshot as docs/backup-and-restore.md says';

/** Returns the command, or else the group, that the words begin with. */
export function findCommand(words: readonly string[]): CommandRow | undefined {
  const begins = ({ name }: CommandRow) => name.split(' ').every((word, at) => words[at] === word);
  return commands.findLast(begins);
}

/** Returns what a command does with the options that are given. */
export function formOf(row: CommandRow, isGiven: (option: string) => boolean): CommandForm {
  return row.forms?.find(({ options }) => options.some(isGiven)) ?? row;
}

/** Returns what a command line does that consists of words and `--option=value`. */
export function formIn(argv: readonly string[]): CommandForm {
  const row = findCommand(argv);
  if (!row) throw new Error(`there is no command ${argv[0]}`);
  const isGiven = (option: string) =>
    argv.some((word) => word === `--${option}` || word.startsWith(`--${option}=`));
  return formOf(row, isGiven);
}
