/**
 * Three acts on the embedded emulator. Each claim is compared with the requests that the platform
 * received and with its present state; one that is false is named, and fails the demo.
 */
import type { Called } from '../compose/command-options.ts';
import { changeCrm, changePlatform, claims, type Claims } from '../trials/demo/sample-people.ts';
import {
  checkClaims,
  type ClaimResult,
  lookBefore,
  writesIn,
  pass,
  type Passed,
} from '../trials/demo/claim-check.ts';
import { createPage, type DemoPage, leave } from '../trials/demo/demo-page.ts';
import {
  enrolmentsPerSecond,
  openStage,
  readPeople,
  type Stage,
} from '../trials/demo/demo-platform.ts';
import { type Folder, makeFolder } from '../trials/demo/demo-folder.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { withCommas } from '../domain/values/counted.ts';

export const options = { 'dir <folder>': 'an empty or new folder for what is left' };

/** Plays the demo. The exit code is 0 if every claim was true, otherwise 1. */
export async function run({ flags }: Called<typeof options>, shell: Shell): Promise<number> {
  const folder = makeFolder(flags.dir);
  const stage = await openStage(folder, shell);
  const page = createPage(shell);
  const untrue: ClaimResult[] = [];
  const demo: Demo = { folder, stage, shell, page, untrue };
  try {
    page.title('crm-mirror: a demo in three acts, about twenty seconds long');
    page.say(
      `An email platform runs inside this process, at ${stage.url}; beside it lies the export of a ` +
        'CRM. All people are invented. Everything the demo writes goes to ' +
        `${folder.shown(folder.path)}.`,
    );
    for (const act of [actOne, actTwo, actThree]) {
      await act(demo);
      if (untrue.length > 0) break;
    }
    leave(folder, stage, page);
  } finally {
    await stage.close();
  }
  if (untrue.length === 0) return exitCode('done');
  page.title(`The demo failed: ${untrue.length} things did not happen as described`);
  for (const { subject, says, truth } of untrue)
    page.item(subject, `Described: ${says} In truth: ${truth}`);
  return exitCode('failed');
}

interface Demo {
  folder: Folder;
  stage: Stage;
  shell: Shell;
  page: DemoPage;
  untrue: ClaimResult[];
}

async function actOne(demo: Demo): Promise<void> {
  const { page, stage } = demo;
  const there = stage.emulator.world.contacts().length;
  page.title('Act 1: the first run');
  page.say(
    `There are ${there} people on the platform already. The CRM does not know ` +
      `${stage.foreign.length} of them. First a plan: it shows what a run would do, and writes ` +
      'nothing.',
  );
  page.command('crm-mirror plan');
  const plan = await pass({ ...demo, writes: false });
  tell(demo, [nothingWritten('The plan', plan)]);
  page.say(
    `Now for real. The platform allows ${enrolmentsPerSecond} enrolments a second; a tenth of that ` +
      'is left to other programs.',
  );
  const passed = await sync(demo, claims.one);
  const { ms, requests } = passed.summary;
  const enrolments = writesIn(passed.requests).filter(
    ({ route }) => route === 'contacts.enrol',
  ).length;
  const seconds = ms / 1000;
  tell(demo, [
    {
      subject: `${withCommas(enrolments)} enrolments in ${seconds.toFixed(1)} s`,
      says:
        `That is ${Math.round(enrolments / seconds)} a second. ` +
        `${requests.rateLimited} requests were refused by a rate limit (429).`,
      truth: undefined,
    },
  ]);
  if (passed.summary.status === 'rejected') {
    page.say(
      'The run ended as "rejected": everything else is done, but some records are newly invalid. ' +
        `A script sees exit code ${exitCode('rejected')}, once; known ones do not fail every night.`,
    );
  }
}

async function actTwo(demo: Demo): Promise<void> {
  const { page, folder, stage } = demo;
  page.title('Act 2: both sides change');
  changePlatform(stage.emulator);
  changeCrm(folder);
  page.say('On the platform:');
  page.lines([
    '  clara.fischer@example.com leaves the newsletter',
    '  david.cohen@example.org unsubscribes from all mail',
    '  somebody deletes yuki.tanaka@example.net',
    '  somebody edits the newsletter template by hand',
  ]);
  page.say('In the CRM:');
  page.lines([
    '  oscar.silva, rita.gomez and karl.weber are missing from the new export',
    '  anna.berg@example.org changes the newsletter to no, emil.jensen@example.com to yes',
    '  zoe.laurent@example.com is new',
    '  the invoice template has a new subject',
  ]);
  const passed = await sync(demo, claims.two);
  const told = [...claims.two.people, ...claims.two.templates];
  const expected = told.reduce((sum, { sent }) => sum + sent.length, 0);
  const written = writesIn(passed.requests).length;
  tell(demo, [
    {
      subject: `${expected} changes in all`,
      says: 'Those above and no others: what had not changed was not sent again.',
      truth: written === expected ? undefined : `${written} changes were sent`,
    },
  ]);
}

async function actThree(demo: Demo): Promise<void> {
  demo.page.title('Act 3: once more, and nothing has changed');
  tell(demo, [nothingWritten('The run', await sync(demo, { people: [], templates: [] }))]);
}

async function sync(demo: Demo, claimed: Claims): Promise<Passed> {
  const { page, stage, shell } = demo;
  const { emulator, foreign, config } = stage;
  const before = lookBefore(emulator, foreign);
  page.command('crm-mirror sync');
  const passed = await pass({ ...demo, writes: true });
  const people = await readPeople(config, shell.stop);
  page.say('What happened, and why:');
  const { run: id, status, reasons } = passed.summary;
  const hasEnded = status === 'done' || status === 'rejected';
  const truth = `It ended as "${status}": ${reasons.join('; ')}`;
  tell(demo, [
    ...(hasEnded ? [] : [{ subject: `run ${id}`, says: '', truth }]),
    ...checkClaims(claimed, { ...passed, emulator, people, foreign, before }),
  ]);
  return passed;
}

/** Prints claims. Claims with the same text are printed once, with all their subjects. */
function tell({ page, untrue }: Demo, told: readonly ClaimResult[]): void {
  untrue.push(...told.filter(({ truth }) => truth !== undefined));
  page.lines(['']);
  const texts = Map.groupBy(told, ({ says, truth }) =>
    truth === undefined ? says : `NOT AS DESCRIBED. ${truth}`,
  );
  for (const [text, same] of texts) page.item(same.map(({ subject }) => subject).join(', '), text);
}

function nothingWritten(what: string, { requests }: Passed): ClaimResult {
  const writes = requests.filter(({ method }) => method !== 'GET').length;
  return {
    subject: `${requests.length} requests, ${writes} of them to change anything`,
    says: `${what} read both sides, and wrote nothing.`,
    truth: writes === 0 ? undefined : `${what} wrote on the platform.`,
  };
}
