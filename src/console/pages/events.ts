/** Shows the events of the CRM: what waits, what came, and lets operators process it again. */
import { isExpected } from '../../domain/errors.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { shortHash } from '../../engine/context/person-identity.ts';
import { instant } from '../../compose/output/format-values.ts';
import { readDeliveries, readWaitingEvents } from '../../compose/queues/event-queue.ts';
import { sealIn } from '../../compose/queues/payload-encryption.ts';
import { actionForm, pagerLinks } from '../view/form.ts';
import { html, type Html, prose, sectionsHtml, tiles } from '../../views/render/html.ts';
import { numbers, type Section, type TableRow } from '../../views/sections.ts';
import { readerOf } from '../view/console-text.ts';
import type { Page, PageRequest } from '../view/page.ts';

const shown = 50;

/** The page of events. */
export const eventsPage: Page = {
  path: 'events',
  nav: 'Events',
  async show(request) {
    const title = 'Events';
    const { redis: url, mirror, contacts } = request.mirror.config;
    if (url === undefined || !contacts?.webhook) {
      const none =
        'This mirror takes no events: `contacts.webhook` and a worker with `redis` let the CRM ' +
        'report each change at once.';
      return { title, body: sectionsHtml([{ none }], readerOf(request)) };
    }
    const from = Math.max(0, Math.trunc(Number(request.query['from'] ?? 0)) || 0);
    try {
      const seal = sealIn(request.mirror.config);
      const waiting = await readWaitingEvents({ url, mirror }, shown);
      const log = await readDeliveries({ url, mirror }, seal, { from, count: shown + 1 });
      const nameOf = await namesFor(request);
      // The button reads the record and updates its person, as an event does.
      const show = (section: Section, label = ''): Html =>
        sectionsHtml([section], {
          ...readerOf(request),
          forms(id) {
            if (request.user.role !== 'operator') return '';
            return actionForm(request, { action: 'one-id', label, values: { id } });
          },
        });
      const { refusals, events } = log;
      // The id of a row is the record that can be processed.
      const waits = waiting.events.map(({ record, isErased, state, at, attempts }): TableRow => {
        const is = `${isErased ? 'erased in the CRM, ' : ''}${stateWords[state]}`;
        const cells = [nameOf(record), { moment: instant(at) }, is, String(attempts), ''];
        return { cells, notes: [], ...(state === 'delayed' && !isErased && { id: record }) };
      });
      const came = events.slice(0, shown).map(({ at, record: id, isErased, state }): TableRow => {
        const is = `accepted${isErased ? ', erased in the CRM' : ''}, ${state}`;
        const isDone = state === 'done' && id !== undefined && !isErased;
        return {
          cells: [nameOf(id), { moment: instant(at) }, is, ''],
          notes: [],
          ...(isDone && { id }),
        };
      });
      const columns = ['CRM record', 'Arrived', 'State'];
      const now = {
        table: { columns: [...columns, numbers('Attempts'), 'Do it now'], rows: waits },
        none: 'Every event is processed.',
      };
      const last = {
        title: 'Last deliveries',
        table: { columns: [...columns, 'Again'], rows: came },
        none: 'None in the last seven days.',
      };
      const body = html`${tiles([
        [withCommas(waiting.active), 'are processed now'],
        [withCommas(waiting.waiting), 'wait'],
        [withCommas(waiting.delayed), 'have just arrived, or are tried again later'],
      ])}
      ${show(now, 'Process now')} ${show(last, 'Process again')}
      ${pagerLinks(request, from, shown, events.length > shown)}
      ${show({
        title: 'Refused deliveries',
        table: {
          columns: ['Arrived', 'Why'],
          rows: refusals.map(({ at, why }) => [{ moment: instant(at) }, whyWords[why] ?? why]),
        },
      })}`;
      return { title, body };
    } catch (error) {
      if (!isExpected(error)) throw error;
      return { title, body: html`<p class="flash bad">${prose(error.message)}</p>` };
    }
  },
};

/** Viewers see a hash of the id, because an id may be an address, however it is written. */
async function namesFor(request: PageRequest): Promise<(record: string | undefined) => string> {
  const unknown = '(encrypted with another key)';
  if (request.user.seesAddresses) return (record) => record ?? unknown;
  // The secret is read now, because the snapshot is closed when the page is written.
  const secret = await request.mirror.read(request.user, ({ snapshot }) =>
    snapshot?.meta.get('name-key'),
  );
  if (secret === undefined) return () => '(hidden)';
  return (record) => (record === undefined ? unknown : shortHash({ get: () => secret }, record));
}

const stateWords = { waiting: 'waits', active: 'is processed', delayed: 'is tried later' } as const;

const whyWords: Readonly<Record<string, string>> = {
  unsigned: 'it is not signed',
  old: 'its signature is more than five minutes old, or ahead',
  forged: 'it is signed with another secret, or for another address',
  unnamed: 'it is not JSON, or names no record',
};
