/** Shows the events of the CRM: what waits, what came, and lets operators process it again. */
import { isExpected } from '../../domain/errors.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { shortHash } from '../../engine/context/person-identity.ts';
import { instant } from '../../compose/output/format-values.ts';
import { type LoggedDeliveries, readDeliveries } from '../../compose/queues/delivery-log.ts';
import { sealIn } from '../../compose/queues/payload-encryption.ts';
import { readWaitingEvents, type WaitingEvents } from '../../compose/queues/event-queue.ts';
import { actionForm, pagerLinks } from '../view/form.ts';
import { html, type Html, prose, type Cell, table } from '../../views/render/html.ts';
import { numbers } from '../../views/sections.ts';
import { type Page, type PageRequest } from '../view/page.ts';

const shown = 50;

type NameOf = (record: string | undefined) => string;

/** The page of events. */
export const eventsPage: Page = {
  path: 'events',
  nav: 'Events',
  async show(request) {
    const { redis: url, mirror, contacts } = request.mirror.config;
    if (url === undefined || !contacts?.webhook) {
      const body = html`<p class="quiet">
        This mirror takes no events: <code>contacts.webhook</code> and a worker with
        <code>redis</code> let the CRM report each change at once.
      </p>`;
      return { title: 'Events', body };
    }
    const from = Math.max(0, Math.trunc(Number(request.query['from'] ?? 0)) || 0);
    try {
      const seal = sealIn(request.mirror.config);
      const waiting = await readWaitingEvents({ url, mirror }, shown);
      const log = await readDeliveries({ url, mirror, seal, from, count: shown + 1 });
      const nameOf = await namesFor(request);
      const refused = log.refusals.map(({ at, why }) => [instant(at), whyWords[why] ?? why]);
      const refusals = html`<section>
        <h2>Refused deliveries</h2>
        ${table(['Arrived', 'Why'], refused)}
      </section>`;
      const body = html`${waitingPart(request, waiting, nameOf)}
      ${deliveredPart(request, log, from, nameOf)} ${refused.length === 0 ? '' : refusals}`;
      return { title: 'Events', body };
    } catch (error) {
      if (!isExpected(error)) throw error;
      const body = html`<p class="flash bad">${prose(error.message)}</p>`;
      return { title: 'Events', body };
    }
  },
};

/** Viewers see a hash of the id, because an id may be an address, however it is written. */
async function namesFor(request: PageRequest): Promise<NameOf> {
  const unknown = '(encrypted with another key)';
  if (request.user.seesAddresses) return (record) => record ?? unknown;
  // The secret is read now, because the snapshot is closed when the page is written.
  const secret = await request.mirror.read(request.user, ({ snapshot }) =>
    snapshot?.meta.get('name-key'),
  );
  if (secret === undefined) return () => '(hidden)';
  return (record) => (record === undefined ? unknown : shortHash({ get: () => secret }, record));
}

function waitingPart(
  request: PageRequest,
  { waiting, active, delayed, events }: WaitingEvents,
  nameOf: NameOf,
): Html {
  const count = (n: number, what: string): Html =>
    html`<div class="tile"><b>${withCommas(n)}</b> ${what}</div>`;
  const rows = events.map(({ record, isErased, state, at, attempts }): Cell[] => [
    nameOf(record),
    instant(at),
    `${isErased ? 'erased in the CRM, ' : ''}${stateWords[state]}`,
    attempts,
    state === 'delayed' && !isErased ? processForm(request, 'Process now', record) : '',
  ]);
  const columns = ['CRM record', 'Arrived', 'State', numbers('Attempts'), 'Do it now'];
  return html`<div class="tiles">
      ${count(active, 'are processed now')} ${count(waiting, 'wait')}
      ${count(delayed, 'have just arrived, or are tried again later')}
    </div>
    ${table(columns, rows, 'Every event is processed.')}`;
}

const stateWords = { waiting: 'waits', active: 'is processed', delayed: 'is tried later' } as const;

function deliveredPart(
  request: PageRequest,
  log: LoggedDeliveries,
  from: number,
  nameOf: NameOf,
): Html {
  const rows = log.events
    .slice(0, shown)
    .map(({ at, record, isErased, state }): Cell[] => [
      nameOf(record),
      instant(at),
      `accepted${isErased ? ', erased in the CRM' : ''}, ${state}`,
      state === 'done' && record !== undefined && !isErased
        ? processForm(request, 'Process again', record)
        : '',
    ]);
  return html`<section>
    <h2>Last deliveries</h2>
    ${table(['CRM record', 'Arrived', 'State', 'Again'], rows, 'None in the last seven days.')}
    ${pagerLinks(request, from, shown, log.events.length > shown)}
  </section>`;
}

/** Returns the button that reads the record and updates its person, as an event does. */
function processForm(request: PageRequest, label: string, id: string): Html | '' {
  if (request.user.role !== 'operator') return '';
  return actionForm(request, { action: 'one-id', label, values: { id } });
}

const whyWords: Readonly<Record<string, string>> = {
  unsigned: 'it is not signed',
  old: 'its signature is more than five minutes old, or ahead',
  forged: 'it is signed with another secret, or for another address',
  unnamed: 'it is not JSON, or names no record',
};
