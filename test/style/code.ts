import { findCommand } from '../../src/commands/table.ts';
import { codeOf, matches, type FileText, type Finding, type Rule } from './text.ts';

/** What runs as a process of its own, and so knows it. */
const programs = ['src/cli.ts', 'src/sources/sql/drivers/sqlite-process.ts'];

/** What talks to the terminal. */
const commandLine = ['src/compose/', 'src/views/', 'src/app/', 'src/commands/', 'src/trials/demo/'];

/** What the folder of the composition root shares with the worker is given them, too. */
const inRedis = ['src/compose/queues/', 'src/compose/placement/'];

const isOneOf = (path: string, folders: readonly string[]): boolean =>
  folders.some((folder) => path.startsWith(folder));

/** Where the real clock and real chance come in: everything else is given them. */
const edges = [
  ...programs,
  ...commandLine,
  'src/worker/folder-worker.ts',
  'src/worker/mirror-',
  'src/worker/remote-commands.ts',
  'src/worker/worker-server.ts',
  'src/emulator/http-listener.ts',
  'src/http/system-clock.ts',
  // The composition root of the library: there is no command above it.
  'src/platform/platform.ts',
];

const realTime = new RegExp(
  [
    String.raw`\bDate\.now`,
    String.raw`\bnew Date\(\s*\)`,
    String.raw`(?<!\bnew )\bDate\(\s*\)`,
    String.raw`\bMath\.random`,
    String.raw`\bperformance\.\w+`,
    String.raw`\bset(?:Timeout|Interval|Immediate)\b`,
    String.raw`\bAbortSignal\.timeout`,
    String.raw`\brandom(?:UUID|Bytes|Int)\b`,
    String.raw`\bhrtime\b`,
  ].join('|'),
  'g',
);

/**
 * What takes a turn of the event loop between two parts of long work, or marks where one may be
 * taken: the functions for everybody, the commit that collects writes, and the steps of a plan.
 */
const turnTakers = ['src/engine/context/work-in-parts.ts', 'src/engine/decide/commit-plan.ts'];

const columnsAtMost = 100;

export const clockRule: Rule = {
  name: 'clock',
  mend: 'take the clock or the random source as a parameter; the composition root makes the real one',
  applies: (path) => isSource(path) && (!isOneOf(path, edges) || isOneOf(path, inRedis)),
  find: ({ text }) => matches(realTime, codeOf(text)),
  planted: [
    one('src/engine/run.ts', 'const at = Date.now();'),
    one('src/engine/run.ts', 'const at = new Date().toISOString();'),
    one('src/engine/report/run-summary.ts', 'const lucky = Math.random() < 0.5;'),
    one('src/http/rate-limit/request-gate.ts', 'const since = performance.now();'),
    one(
      'src/http/rate-limit/request-gate.ts',
      'await new Promise((done) => setTimeout(done, 10));',
    ),
    one(
      'src/http/rate-limit/request-gate.ts',
      "import { setTimeout } from 'node:timers/promises';",
    ),
    one('src/emulator/store/contact.ts', 'const id = `c_${crypto.randomUUID()}`;'),
    one('src/platform/api-call.ts', 'const signal = AbortSignal.timeout(10);'),
  ],
  harmless: [
    one('src/engine/run.ts', 'const at = new Date(clock.now());'),
    one('src/engine/run.ts', '// Date.now() would be wrong here'),
    one('src/engine/run.ts', "const text = 'Date.now()';"),
    one('src/http/system-clock.ts', 'const at = Date.now();'),
  ],
};

export const turnRule: Rule = {
  name: 'turn',
  mend: 'pass the parts to inTurns or eachPart (engine/context/work-in-parts.ts)',
  applies: (path) => isSource(path) && !turnTakers.includes(path),
  find: ({ text }) => matches(/\bsleep\(\s*0\s*[,)]|\byield\s*;/g, codeOf(text)),
  planted: [
    one('src/engine/read/source-read.ts', 'await run.clock.sleep(0);'),
    one('src/worker/server/metrics.ts', 'await clock?.sleep(0, stop);'),
    one('src/engine/judge/guard-counts.ts', 'for (const range of ranges) yield;'),
  ],
  harmless: [
    one('src/engine/context/work-in-parts.ts', 'await clock.sleep(0);'),
    one('src/engine/read/source-read.ts', 'await clock.sleep(0.5 * pauseMs);'),
    one('src/store/database/key-range.ts', 'for (const rows of pages) yield rows;'),
  ],
};

export const processRule: Rule = {
  name: 'process',
  mend: 'take what is needed as a parameter: only cli.ts, compose/, app/, views/, commands/, trials/demo/ and other programs know the process and the console',
  applies: (path) =>
    isSource(path) &&
    !programs.includes(path) &&
    (!isOneOf(path, commandLine) || isOneOf(path, inRedis)),
  find: ({ text }) => [
    ...matches(/(?<![\w$.-])(?:process|console)\b(?!:)(?:\.\w+)?/g, codeOf(text)),
    ...matches(/\bfrom '(?:node:)?(?:process|console)'/g, text),
  ],
  planted: [
    one('src/http/send-request.ts', 'const proxy = process.env.HTTPS_PROXY;'),
    one('src/engine/run.ts', 'console.log(plan);'),
    one('src/engine/run.ts', 'process.on(`SIGTERM`, stop);'),
    one('src/engine/run.ts', 'const text = `${process.pid}`;'),
    one('src/engine/run.ts', 'const { pid } = process;'),
    one('src/engine/run.ts', "import { env } from 'node:process';"),
  ],
  harmless: [
    one('src/engine/run.ts', '// in the same process. And'),
    one('src/emulator/emulator.ts', "const answer = { process: createConsole('console') };"),
    one('src/emulator/emulator.ts', 'const wanted = bullmq.process;'),
    one('src/cli.ts', 'const { argv } = process.argv;'),
  ],
};

export const environmentRule: Rule = {
  name: 'environment',
  mend: 'have src/cli.ts hand the environment on; config/ reads it',
  applies: (path) => isSource(path) && path !== 'src/cli.ts',
  find: ({ text }) =>
    matches(/\bprocess\s*\.\s*env\b|\{[^{}]*\benv\b[^{}]*\} = process\b/g, codeOf(text)),
  planted: [
    one('src/commands/worker.ts', "const url = process.env['REDIS_URL'];"),
    one('src/commands/worker.ts', 'const { env } = process;'),
  ],
  harmless: [
    one('src/cli.ts', 'const shell = { env: process.env };'),
    one('src/commands/worker.ts', 'const { env } = shell;'),
  ],
};

/** A value in the text of an address, encoded here or not at all. */
const unencoded =
  /encodeURI(?:Component)?\b|[^/\n]\/\$\{(?!pathSegment\()|[?&]\w+=\$\{(?!queryValue\()/g;

export const addressRule: Rule = {
  name: 'address',
  mend: 'put values into an address with pathSegment or queryValue (domain/address-part.ts)',
  applies: (path) => /^src\/(platform|sources\/(http|hubspot|salesforce))\/.*\.ts$/.test(path),
  find: ({ text }) => matches(unencoded, text),
  planted: [
    one('src/sources/http/a.ts', 'const at = encodeURIComponent(id);'),
    one('src/sources/hubspot/a.ts', 'const at = `${contacts}/${id}`;'),
    one('src/sources/salesforce/a.ts', 'const at = `/sobjects/${object}/describe`;'),
    one('src/platform/a.ts', 'const at = `/v1/list?name=${name}`;'),
  ],
  harmless: [
    one('src/sources/hubspot/a.ts', 'const at = `${contacts}/${pathSegment(id)}`;'),
    one('src/platform/a.ts', 'const at = `/v1/list?name=${queryValue(name)}`;'),
    one('src/sources/salesforce/a.ts', 'const at = `https://${host}`;'),
    one('src/console/a.ts', 'const at = `/m/${encodeURIComponent(id)}`;'),
  ],
};

export const columnRule: Rule = {
  name: 'columns',
  mend: `break the line: at most ${columnsAtMost} columns, what stands in quotes not counted`,
  applies: (path) => /^(src|test|bench|bin)\/.*\.(ts|mjs)$/.test(path),
  find: ({ text }) => {
    const counted = unquoted(text);
    let offset = 0;
    return text.split('\n').flatMap((line, index): Finding[] => {
      const start = offset;
      offset += line.length + 1;
      const columns = [...(counted[index] ?? '')].length;
      return columns > columnsAtMost ? [{ offset: start, what: `${columns} columns` }] : [];
    });
  },
  planted: [
    one('src/engine/run.ts', `// ${'so '.repeat(33)}`),
    one('src/engine/run.ts', `const sum = ${'one + '.repeat(20)}one;`),
  ],
  harmless: [
    one('src/engine/run.ts', `// ${'—'.repeat(97)}`),
    one('src/engine/run.ts', `  'a message that must stay in one piece, ${'long '.repeat(20)}',`),
  ],
};

/** A command line in backticks: in a page, or in a text of the code. */
const quotedCommands = {
  page: /`crm-mirror ([a-z][a-z-]*(?: [a-z-]+)*)/g,
  code: /(?:\\`|'[^'`\n]*`)crm-mirror ([a-z][a-z-]*(?: [a-z-]+)*)/g,
};

export const commandRule: Rule = {
  name: 'command',
  mend: 'name a command of src/commands/table.ts',
  applies: (path) => isSource(path) || path.endsWith('.md'),
  find: ({ path, text }) =>
    [...text.matchAll(quotedCommands[path.endsWith('.md') ? 'page' : 'code'])]
      .filter(([, words = '']) => {
        const row = findCommand(words.split(' '));
        // What keys are derived for is named so.
        if (words === 'audit log') return false;
        return !row || (!row.load && row.name !== words);
      })
      .map(({ index, 1: what = '' }) => ({ offset: index, what })),
  planted: [
    one('docs/page.md', 'Call `crm-mirror one ann@example.com`.'),
    one('src/engine/run.ts', "const fix = 'run `crm-mirror apply`';"),
    one('README.md', 'See `crm-mirror platform domain list`.'),
  ],
  harmless: [
    one('docs/page.md', 'Call `crm-mirror sync --person ann@example.com`; crm-mirror one by one.'),
    one('README.md', 'See `crm-mirror platform domains list`, or `crm-mirror --help`.'),
    one('src/store/memory.ts', 'const purpose = `crm-mirror audit log`;'),
    one('src/engine/run.ts', "const fix = 'see `crm-mirror audit`';"),
  ],
};

function isSource(path: string): boolean {
  return path.startsWith('src/') && path.endsWith('.ts');
}

/** The lines of a text without what stands in quotes; a comment counts, also behind code. */
function unquoted(text: string): string[] {
  const code = codeOf(text).split('\n');
  return text.split('\n').map((line, index) => {
    if (/^\s*(\/\/|\/\*|\*)/.test(line)) return line;
    return (code[index] ?? '').replaceAll(/(['"`}/]) +(?=['"`/]|\$\{)/g, '$1');
  });
}

function one(path: string, text: string): FileText {
  return { path, text: `\n${text}\n` };
}
