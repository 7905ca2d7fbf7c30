/** Shows what concerns all mirrors together: what has happened in them, and their audit logs. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { dayText, instant } from '../../compose/output/format-values.ts';
import { awaitingWords, isVerified } from '../../views/audit/log-verification.ts';
import { readHappened } from '../../views/status/what-happened.ts';
import { html, type Html, sectionsHtml, textHtml, timeOf } from '../../views/render/html.ts';
import { names, numbers, present, type Span, type Text } from '../../views/sections.ts';
import type { User } from '../access/access-rules.ts';
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
  const { mirror: only = '' } = query;
  const user = { name: '', role: 'viewer', seesAddresses: false, ...request.visitor } as const;
  let newest: Shown[] = [];
  const meant = mirrors.filter(({ config }) => only === '' || only === config.mirror);
  const unread = await readEach(meant, clock, async (mirror) =>
    mirror.read(user, (seen) => {
      const { snapshot } = seen;
      if (!snapshot) return;
      const count = perPage + 1;
      const last = newest.at(perPage)?.at ?? 0;
      const reader = readerOf({ mirror }, snapshot);
      const items = readHappened({ ...seen, snapshot }, { since, before, count })
        .slice(0, count)
        .filter(({ at }) => at >= last)
        .map(({ section, words, times = 1, ...one }): Shown => {
          const content = sectionsHtml([section()], reader);
          const title = textHtml(words, reader);
          return { ...one, title, content, times, names: [mirror.config.mirror] };
        });
      newest = [...newest, ...items].toSorted((a, b) => b.at - a.at).slice(0, count);
    }),
  );
  const shown = newest.slice(0, perPage);
  // What happened at the same time as the last one stands on the next page, too.
  const next = newest.length > perPage && { before: `${(shown.at(-1)?.at ?? 0) + 1}` };
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
      ${shown.length === 0 && html`<p class="quiet">Nothing has happened in this time.</p>`}
      <section>
        <ol class="timeline">
          ${folded(shown).map(
            ({ at, names: of, title, times, content }) =>
              html`<li>
                <details>
                  <summary>
                    ${timeOf(instant(at), true)}
                    ${mirrors.length > 1 && html`<strong>${of.join(', ')}</strong>`} ${title}
                    ${times > 1 && `×${withCommas(times)}`}
                  </summary>
                  ${content}
                </details>
              </li>`,
          )}
        </ol>
      </section>
      ${pageLinks({ here, query }, [
        query['before'] !== undefined && ['Newest', { before: undefined }],
        next && ['Older', next],
      ])}`,
  });
}

/** What has happened, as the page shows it. */
interface Shown {
  at: number;
  same?: string;
  /** The mirrors. */
  names: string[];
  title: Html;
  content: Html;
  times: number;
}

/** Makes one of what stands in a row and is the same: one act in several mirrors, or failures. */
function folded(all: readonly Shown[]): Shown[] {
  const rows: Shown[] = [];
  for (const one of all) {
    const last = rows.at(-1);
    if (last?.same === undefined || last.same !== one.same) rows.push({ ...one });
    else {
      const isNew = !last.names.includes(one.names[0] ?? '');
      if (one.times > 0) last.content = html`${last.content}${one.content}`;
      last.names = [...last.names, ...(isNew ? one.names : [])];
      last.times += one.times;
    }
  }
  return rows;
}

const verifying = ['audit', 'verify', '--json'];

/** Verifies the audit logs one after the other, in processes of their own. Never throws. */
export async function verifyLogs(user: User, mirrors: readonly ConsoleMirror[]): Promise<void> {
  for (const { jobs, runApart } of mirrors) {
    const about = { kind: 'verify', subject: 'audit', by: user.name, argv: verifying } as const;
    await jobs.begin({ ...about, isStoppable: false, work: async () => runApart(verifying) });
  }
}

/** Sends the page of the audit logs of all mirrors, with what their verification has found. */
export async function showLogs(
  request: FastifyRequest,
  reply: FastifyReply,
  mirrors: readonly ConsoleMirror[],
): Promise<void> {
  const csrf = csrfOf(reply, request.visitor);
  const all = mirrors.flatMap(({ jobs }) => jobs.get('audit') ?? []);
  const isBusy = all.some(({ answer }) => answer === undefined);
  const rows = mirrors.map(({ jobs, config: { mirror } }): Text[] => {
    const link = { page: mirror, text: mirror };
    const { answer, startedAt, endedAt = 0 } = jobs.get('audit') ?? {};
    if (startedAt === undefined) return [link, '', '', { tone: 'quiet', text: 'not verified yet' }];
    if (!answer) return [link, '', '', { tone: 'busy', text: 'being verified' }];
    const found = documentIn(answer, isVerified);
    if (Array.isArray(found)) return [link, '', '', found.join(' ')];
    const { entries, provenUpTo, faults, awaiting = 0 } = found;
    const [fault] = faults;
    const is: Text = fault
      ? { tone: 'bad', text: `not as it was written: entry ${fault.seq}: ${fault.what}` }
      : { tone: 'good', text: 'whole' };
    const until = provenUpTo === 0 ? 'nothing' : `entry ${withCommas(provenUpTo)}`;
    const left = awaiting > 0 && ({ tone: 'busy', text: awaitingWords(awaiting) } as const);
    const result = present<Span>(is, ' ', left, left && ' ', instant(endedAt));
    return [link, withCommas(entries), until, result];
  });
  const columns = [names('Mirror'), numbers('Entries'), 'Proven up to', 'Result'];
  const button = html`<button>Verify the logs of ${counted(mirrors.length, 'mirror')}</button>`;
  const mayBegin = request.visitor?.role === 'operator' && !isBusy;
  await sendPage(request, reply, {
    title: 'Audit logs',
    csrf,
    body: html`<p><a href="/">All mirrors</a></p>
      <div id="logs" ${isBusy && html`data-refresh="2"`}>
        ${mayBegin && postForm(csrf, '/audit', button)}
        ${sectionsHtml([{ table: { columns, rows } }], { pageLink: (name) => `/m/${name}/audit` })}
      </div>`,
  });
}
