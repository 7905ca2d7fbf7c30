/** Shows which events of the CRM wait, and lets operators process one now. */
import { instant } from '../../cli/output/format-values.ts';
import { isExpected } from '../../domain/errors.ts';
import { withCommas } from '../../domain/values/counted.ts';
import {
  readWaitingEvents,
  type WaitingEvent,
  type WaitingEvents,
} from '../../worker/queues/waiting-events.ts';
import { actionForm } from '../view/form.ts';
import { html, type Html, type Page, type PageRequest, prose } from '../view/page.ts';
import { type Cell, numbers, table } from '../view/table.ts';

const shown = 50;

/** The page of events. */
export const eventsPage: Page = {
  path: 'events',
  nav: 'Events',
  async show(request) {
    const { redis, mirror, contacts } = request.mirror.config;
    if (redis === undefined || !contacts?.webhook) {
      const body = html`<p class="quiet">
        This mirror takes no events: <code>contacts.webhook</code> and a worker with
        <code>redis</code> let the CRM report each change at once.
      </p>`;
      return { title: 'Events', body };
    }
    try {
      const waiting = await readWaitingEvents({ url: redis, mirror }, shown);
      return { title: 'Events', body: waitingPart(request, waiting) };
    } catch (error) {
      if (!isExpected(error)) throw error;
      const body = html`<p class="flash bad">${prose(error.message)}</p>`;
      return { title: 'Events', body };
    }
  },
};

function waitingPart(
  request: PageRequest,
  { waiting, active, delayed, events }: WaitingEvents,
): Html {
  const count = (n: number, what: string): Html =>
    html`<div class="tile"><b>${withCommas(n)}</b> ${what}</div>`;
  return html`<div class="tiles">
      ${count(active, 'are processed now')} ${count(waiting, 'wait')}
      ${count(delayed, 'have just arrived, or are tried again later')}
    </div>
    ${
      events.length === 0
        ? html`<p class="quiet">Every event is processed.</p>`
        : table(
            ['CRM record', 'Arrived', 'State', numbers('Attempts'), 'Do it now'],
            events.map((event) => eventRow(request, event)),
          )
    }`;
}

const stateWords = { waiting: 'waits', active: 'is processed', delayed: 'is tried later' } as const;

function eventRow(
  request: PageRequest,
  { record, isErased, state, at, attempts }: WaitingEvent,
): Cell[] {
  const isDelayed = state === 'delayed' && !isErased && request.user.role === 'operator';
  return [
    request.user.seesAddresses || !record.includes('@') ? record : '(an address)',
    instant(at),
    `${isErased ? 'erased in the CRM, ' : ''}${stateWords[state]}`,
    attempts,
    isDelayed
      ? actionForm(request, { action: 'one', label: 'Process now', values: { person: record } })
      : '',
  ];
}
