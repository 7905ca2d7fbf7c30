/** Shows what concerns all mirrors together: what has happened in them, and their audit logs. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { explain } from '../../compose/output/failure-report.ts';
import { dayText, instant } from '../../compose/output/format-values.ts';
import type { Verification } from '../../store/memory/verify-log.ts';
import {
  changedSince,
  type Happened,
  happenedSection,
  readHappened,
  sumWords,
} from '../../views/status/what-happened.ts';
import type { ToldChanges } from '../../views/status/run-history.ts';
import { html, type Html, sectionsHtml } from '../../views/render/html.ts';
import { names, numbers, type Text } from '../../views/sections.ts';
import type { ConsoleMirror } from '../view/console-mirror.ts';
import { readerOf } from '../view/console-text.ts';
import { choice, filterForm, pageLinks, postForm } from '../view/form.ts';
import { documentIn } from '../view/jobs.ts';
import { csrfOf, sendPage } from '../view/layout.ts';
import { readEach } from './mirrors.ts';

const dayMs = 86_400_000;
/** With ten changes each, a page stays below 150 KB. */
const perPage = 40;
const queries = z.record(z.string(), z.string()).catch({});
const dayQuery = z.iso.date().catch('');

/** Sends the page of what has happened since a day in all mirrors, or in one; since yesterday. */
export async function showSince(
  request: FastifyRequest,
  reply: FastifyReply,
  mirrors: readonly ConsoleMirror[],
  clock: Clock,
): Promise<void> {
  const yesterday = instant(clock.now() - dayMs).slice(0, 10);
  const query = queries.parse(request.query);
  const day = dayQuery.parse(query['day']) || yesterday;
  const since = Date.parse(day);
  const before = Number(query['before']) || Number.MAX_SAFE_INTEGER;
  const isMeant = ({ config }: ConsoleMirror) =>
    !query['mirror'] || query['mirror'] === config.mirror;
  const user = { name: '', role: 'viewer', seesAddresses: false, ...request.visitor } as const;
  const changes: ToldChanges[] = [];
  let newest: (Happened & { item: Html })[] = [];
  let from = since;
  const unread = await readEach(mirrors.filter(isMeant), clock, async (mirror) =>
    mirror.read(user, (seen) => {
      const { snapshot } = seen;
      if (!snapshot) return;
      const read = readHappened({ ...seen, snapshot }, { since, before });
      changes.push(changedSince(snapshot, since));
      from = Math.max(from, read.from);
      const last = newest.at(perPage)?.at ?? 0;
      const reader = readerOf({ mirror }, snapshot);
      // Most of what is older than a page of the other mirrors is not read.
      const own = read.found.slice(0, perPage + 1).filter(({ at }) => at >= last);
      const items = own.map((one) => {
        const section = happenedSection(one, seen, mirrors.length > 1);
        return { ...one, item: sectionsHtml([section], reader) };
      });
      newest = [...newest, ...items].toSorted((a, b) => b.at - a.at).slice(0, perPage + 1);
    }),
  );
  const all = newest.filter(({ at }) => at >= from);
  const shown = all.slice(0, perPage);
  // What happened at the same time as the last one is shown again on the next page.
  const next = (shown.length < all.length ? (shown.at(-1)?.at ?? 0) : from - 1) + 1;
  const others = `Their snapshots cannot be read here: ${unread.join(', ')}.`;
  const here = request.url;
  const named = mirrors.map(({ config }) => config.mirror);
  const fields = [
    { name: 'day', label: 'Since', type: 'date' } as const,
    ...(named.length > 1 ? [choice('mirror', 'Mirror', named)] : []),
  ];
  await sendPage(request, reply, {
    title: day === yesterday ? 'Since yesterday' : `Since ${dayText(day)}`,
    body: html`<p><a href="/">All mirrors</a></p>
      ${filterForm({ here, query: { ...query, day } }, fields)}
      ${unread.length > 0 && html`<p class="flash bad">${others}</p>`}
      <p>Runs about all people, in all: ${sumWords(changes)}.</p>
      ${shown.length === 0 && html`<p class="quiet">Nothing has happened in this time.</p>`}
      <section>
        <ol class="timeline">
          ${shown.map(({ item }) => html`<li>${item}</li>`)}
        </ol>
      </section>
      ${pageLinks({ here, query }, [
        query['before'] !== undefined && ['Newest', { before: undefined }],
        next > since && ['Older', { before: `${next}` }],
      ])}`,
  });
}

type Verified = Verification & { whole: boolean };
const isVerified = (value: unknown): value is Verified =>
  typeof value === 'object' && value !== null && 'provenUpTo' in value;

/** The verifications of the audit logs of all mirrors, one of which goes on at a time. */
export type LogChecks = ReturnType<typeof createLogChecks>;

/** Creates them; what they have found is forgotten with the process. */
export function createLogChecks(clock: Clock) {
  const found = new Map<string, readonly Text[]>();
  let isBusy = false;
  const verify = async ({ runApart }: ConsoleMirror): Promise<Text[]> => {
    const check = documentIn(await runApart(['audit', 'verify', '--json']), isVerified);
    if (Array.isArray(check)) return ['', '', check.join(' ')];
    const { whole, entries, provenUpTo, faults } = check;
    const wrong = `not as it was written: entry ${faults[0]?.seq}: ${faults[0]?.what}`;
    const is = whole
      ? ({ tone: 'good', text: 'whole' } as const)
      : ({ tone: 'bad', text: wrong } as const);
    const until = provenUpTo === 0 ? 'nothing' : `entry ${withCommas(provenUpTo)}`;
    return [withCommas(entries), until, [is, ` ${instant(clock.now())}`]];
  };
  return {
    isBusy: (): boolean => isBusy,
    /** Returns the cells of a mirror's row behind its name. */
    of: (mirror: string): readonly Text[] =>
      found.get(mirror) ?? ['', '', { tone: 'quiet', text: 'not verified yet' }],
    /** Verifies one log after the other, unless this goes on. Never throws. */
    async begin(mirrors: readonly ConsoleMirror[]): Promise<void> {
      if (isBusy) return;
      isBusy = true;
      const say = ({ config }: ConsoleMirror, text: string) =>
        found.set(config.mirror, ['', '', { tone: 'busy', text }]);
      for (const mirror of mirrors) say(mirror, 'waits');
      for (const mirror of mirrors) {
        say(mirror, 'is verified');
        const cells = await verify(mirror).catch((error: unknown) => ['', '', explain(error).text]);
        found.set(mirror.config.mirror, cells);
      }
      isBusy = false;
    },
  };
}

/** Sends the page of the audit logs of all mirrors, with what their verification has found. */
export async function showLogs(
  request: FastifyRequest,
  reply: FastifyReply,
  mirrors: readonly ConsoleMirror[],
  checks: LogChecks,
): Promise<void> {
  const csrf = csrfOf(reply, request.visitor);
  const rows = mirrors.map(({ config: { mirror } }) => [
    { page: mirror, text: mirror },
    ...checks.of(mirror),
  ]);
  const columns = [names('Mirror'), numbers('Entries'), 'Proven up to', 'Result'];
  const button = html`<button>Verify the logs of ${counted(mirrors.length, 'mirror')}</button>`;
  const mayBegin = request.visitor?.role === 'operator' && !checks.isBusy();
  await sendPage(request, reply, {
    title: 'Audit logs',
    csrf,
    body: html`<p><a href="/">All mirrors</a></p>
      <div id="logs" ${checks.isBusy() && html`data-refresh="2"`}>
        ${mayBegin && postForm(csrf, '/audit', button)}
        ${sectionsHtml([{ table: { columns, rows } }], { pageLink: (name) => `/m/${name}/audit` })}
      </div>`,
  });
}
