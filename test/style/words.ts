import { matches, type FileText, type Finding, type Rule } from './text.ts';

/** Words for which this project has a better one, in any form: listManager, MANAGERS, manager-x. */
const banned = ['manager', 'util', 'checksum', 'sync token'];

/** What others named so. */
const named = ['node:util', 'lockManager'];

export const wordRule: Rule = {
  name: 'words',
  mend: 'use the one word of the project (docs/glossary.md), or say what it does',
  applies: (path) => path.startsWith('src/') || ['README.md', 'CHANGELOG.md'].includes(path),
  find: ({ path, text }) => [
    ...findBanned(path).map(({ what }) => ({ offset: 0, what: `${what} in the file's name` })),
    ...findBanned(text),
  ],
  planted: [
    one('src/engine/run.ts', 'class RunManager {}'),
    one('src/engine/run.ts', 'const requestManager = 1;'),
    one('src/engine/run.ts', 'const JOB_MANAGER = 1;'),
    one('src/engine/run.ts', '// the manager of jobs answers'),
    one('src/sources/shared/files/file-state.ts', 'fingerprint = checksums;'),
    one('src/http/http-utils.ts', ''),
    one('src/managers/text.ts', ''),
    one('README.md', 'It remembers a sync token.'),
    one('CHANGELOG.md', '- Managers are stopped.'),
  ],
  harmless: [
    one('src/engine/run.ts', "import { inspect } from 'node:util';"),
    one('src/engine/run.ts', '// manage, serve, futile'),
    one('test/engine/run.test.ts', 'const manager = 1;'),
  ],
};

/** Tools and places of the authors, and notes to oneself. */
const elsewhere = new RegExp(
  [
    String.raw`\bissue #`,
    String.raw`\b(?:todo|fixme)\b`,
    String.raw`(?<![\w.$}])/(?:home|root)/`,
  ].join('|'),
  'gi',
);

export const workplaceRule: Rule = {
  name: 'workplace',
  mend: 'say it without: the project speaks of itself alone, and works wherever it is cloned',
  applies: (path) => !path.startsWith('test/style/words'),
  find: ({ text }) => matches(elsewhere, text),
  planted: [
    one('src/engine/run.ts', '// TODO: count'),
    one('src/engine/run.ts', '/* FIXME */'),
    one('test/engine/run.test.ts', "const file = '/home/ann/people.csv';"),
    one('Dockerfile', 'COPY . /home/node/app'),
    one('README.md', 'See issue #12.'),
    one('config/mirror.yaml', 'snapshot: /root/acme.sqlite'),
  ],
  harmless: [
    one('src/engine/run.ts', "const url = 'https://example.com/home/index.html';"),
    one('test/engine/run.test.ts', 'const file = `${folder}/home/people.csv`;'),
    one('src/engine/run.ts', 'const work = `./home/${homework}`;'),
  ],
};

/** Banned words in a text, whatever their case and whether they stand alone or in a name. */
function findBanned(text: string): Finding[] {
  const known = new RegExp(named.join('|'), 'g');
  const own = text.replaceAll(known, (name) => ' '.repeat(name.length));
  // A word begins after no letter, or where a name's next part begins.
  const part = (word: string) => {
    const [first, rest] = [word.charAt(0), word.slice(1)];
    const upper = first.toUpperCase();
    return [
      `(?<![A-Za-z])[${first}${upper}]${rest}s?(?![a-z])`,
      `(?<=[a-z0-9])${upper}${rest}s?(?![a-z])`,
      `(?<![A-Z])${word.toUpperCase()}S?(?![A-Za-z])`,
    ].join('|');
  };
  return matches(new RegExp(banned.map(part).join('|'), 'g'), own);
}

function one(path: string, text: string): FileText {
  return { path, text: `\n${text}\n` };
}
