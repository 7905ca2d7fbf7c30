import type { Command } from 'commander';
import { countOf, type FlagsOf, naming, sinceOf, verbose } from '../compose/command-options.ts';
import { Invalid } from '../domain/errors.ts';
import { operations } from '../platform/operations.ts';
import { withMemory } from '../store/memory/memory.ts';
import type { RequestFilter } from '../store/memory/requests.ts';
import { masked, namedBy, wordOf } from '../views/lookup/person-names.ts';
import { look } from '../app/snapshot-command.ts';
import type { Seen } from '../views/lookup/seen-mirror.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exactInstant, instant } from '../compose/output/format-values.ts';
import { withCommas } from '../domain/values/counted.ts';
import { numbers, type TableRow } from '../views/sections.ts';

const shownUsually = 20;

export const options = {
  ...naming,
  ...verbose,
  'person <who>': 'only requests about this person: an address or a hash',
  failed: 'only requests that were refused or not answered',
  'route <name>': 'only requests of a route (contacts.enrol), or of several (contacts)',
  'run <id>': 'only requests of this run',
  'since <time>': 'only requests since then: 2026-03-01T12:00:00Z, 2026-03-01, 12h',
  'limit <n>': `how many, the newest first (${shownUsually})`,
};
type Flags = FlagsOf<typeof options>;

export const help = `
Shows what the commands that write, and the worker, sent to the platform, and what it answered.
Each attempt is a request of its own (Try). Of a list only the size is kept. --verbose and --json
show the run and the texts. Addresses appear as hashes, except at a terminal or with --addresses.
\`requests\` in the configuration states how long requests are kept (14 days).`;

/** Lists the newest requests to the platform. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const last = countOf(flags.limit) ?? shownUsually;
  return look(flags, shell, (seen) => {
    const { config, snapshot, names } = seen;
    const { mirror, requests, memory } = config;
    const filter = filterOf(flags, seen);
    const found = snapshot && withMemory(memory, (opened) => opened.requests.read(filter, last));
    const { newest, more } = found ?? { newest: [], more: 0 };
    const isPlain = flags.addresses ?? shell.terminal;
    const shown = isPlain ? newest : newest.map((one) => masked(one, names));
    const told = shown.map(
      ({ at, run, route, method, path, status, failure, ms, attempt, ...one }) => {
        const { person, requestId, size, rows, request, answer } = one;
        const sent = {
          at: exactInstant(at),
          run,
          route,
          method,
          path,
          status,
          failure,
          ms,
          attempt,
        };
        return { ...sent, person, requestId, size, rows, request, answer };
      },
    );
    const document = { mirror, since: exactInstant(filter.since), requests: told, more };
    let none = `No requests of ${mirror} are logged yet; a run logs them in ${memory.path}`;
    if (found !== undefined) none = `No such requests of ${mirror} are logged`;
    if (!requests.isOn) none = `The requests of ${mirror} are not logged (requests.log is off)`;
    const leavesOut = ['Try', 'ms'];
    const columns = ['Sent', 'Route', 'Status', numbers('ms'), numbers('Try'), 'Person'];
    const rows = shown.map((one): TableRow => {
      const { run, method, path, requestId, request, answer, failure, status, size } = one;
      const isFailed = status === null || status < 200 || status > 299;
      const ids = [
        ...(run === null ? [] : [`run ${run}`]),
        ...(requestId === null ? [] : [`request id ${requestId}`]),
      ];
      const bytes = size === null ? '' : `${withCommas(size)} bytes`;
      return {
        cells: [
          instant(one.at),
          one.route,
          String(status ?? '–'),
          withCommas(one.ms),
          String(one.attempt),
          one.person ?? (one.rows === null ? '–' : `– (${withCommas(one.rows)} listed)`),
        ],
        notes: [
          ...(flags.verbose ? [[`${method} ${path}`, ...ids].join(', ')] : []),
          ...(flags.verbose && request !== null ? [`sent      ${request}`] : []),
          ...(flags.verbose || isFailed
            ? [`answered  ${(failure ?? answer ?? bytes) || '–'}`]
            : []),
        ],
      };
    });
    const rest = `… and ${withCommas(more)} more (--limit ${last + more} shows all)`;
    return {
      document,
      sections: [{ table: { columns, rows, leavesOut }, none }, { lines: more > 0 ? [rest] : [] }],
    };
  });
}

function filterOf(flags: Flags, { config, snapshot, now }: Seen): RequestFilter {
  const { run, route, failed } = flags;
  const routes = [...new Set(Object.values(operations).map((one) => one.route))];
  const isKnown = routes.some((one) => one === route || one.startsWith(`${route}.`));
  if (route !== undefined && !isKnown) {
    throw new Invalid(`--route ${route}: there is no such route`, {
      fix: `write one of ${routes.join(', ')}`,
    });
  }
  const word = flags.person === undefined ? undefined : wordOf(flags.person);
  const isMeant = word !== undefined && snapshot ? namedBy(word, snapshot) : () => false;
  if (word !== undefined && !/^#|@/.test(word)) {
    throw new Invalid(`--person ${word}: this is no person`, {
      fix: 'give an address, or a hash as runs and status show it (#9cc428f416d4)',
    });
  }
  const asked = sinceOf(flags.since, now);
  const kept = now - config.requests.keepMs;
  return {
    since: asked === null ? kept : Math.max(asked, kept),
    run,
    route,
    failed,
    person: word?.startsWith('#') ? (key) => isMeant({ kind: 'contact', key }) : word,
  };
}
