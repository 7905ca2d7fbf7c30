/** One template as its file and the platform state it. */
import {
  desireTemplate,
  decodeTemplate,
  observeTemplate,
  type RecordedTemplate,
} from '../../../src/records/template/template-state.ts';
import { acked } from '../../../src/records/change-outcome.ts';
import type { Decision } from '../../../src/records/decision.ts';
import type { Change } from '../../../src/domain/change.ts';
import type { DesiredRow, ObservedRow, RecordedRow } from '../../../src/domain/record.ts';
import type { Template } from '../../../src/platform/answer-schemas.ts';
import {
  LATER,
  type Letters,
  NOON,
  open,
  type States,
  states as statesOf,
} from './record-stage.ts';

export const WELCOME = 'welcome';
export const MADE = '2026-11-01T00:00:00.000Z';
export const EDITED = '2026-11-19T00:00:00.000Z';

export const states = (known: Partial<States>): States => statesOf({ key: WELCOME, ...known });

/** The file welcome.yaml. */
export function file(fields: Record<string, unknown> = {}): DesiredRow {
  return desireTemplate({ key: WELCOME, ...fields }, 'welcome.yaml');
}

/** What the platform shows of a template; what is not named is empty. */
export function shown(fields: Partial<Template> = {}): ObservedRow {
  const empty = { description: '', subject: '', fromEmail: '', replyTo: '', previewText: '' };
  return observeTemplate({
    ...empty,
    id: 'tpl_1',
    name: WELCOME,
    content: [],
    variables: [],
    status: 'draft',
    updatedAt: MADE,
    ...fields,
  });
}

export interface Sent {
  op: Change['op'];
  target: string | undefined;
  fields: object;
}

/** What is to be sent, in order. */
export function sends({ changes }: Pick<Decision, 'changes'>): Sent[] {
  return changes.map(({ op, target, body }) => ({
    op,
    target,
    fields: decodeTemplate.change({ body }).value.fields,
  }));
}

export const bodyOf = (row: RecordedRow | undefined): RecordedTemplate =>
  decodeTemplate.recorded({ body: row?.body ?? '' }).value;

/** What is recorded once the platform answered each change with `observed`. */
export function answered(
  kind: Letters,
  decision: Decision,
  { before, observed }: { before?: RecordedRow | undefined; observed: ObservedRow },
): RecordedRow | undefined {
  return decision.changes.reduce<RecordedRow | undefined>(
    (recorded, change) =>
      kind.acknowledge(recorded, change, { ...acked({ id: observed.id, observed }), at: LATER }),
    decision.note ?? before,
  );
}

export const keep = open().templates;
export const overwrite = open({ templates: { templates: 'overwrite' } }).templates;
export const decide = (known: Partial<States>, kind: Letters = keep) => kind.decide(states(known));

export const hello = file({ subject: 'Hello' });
export const helloShown = (fields: Partial<Template> = {}) =>
  shown({ subject: 'Hello', ...fields });
/** Written and settled some time ago. */
export const settled: RecordedRow = {
  ...decide({ desired: [hello], observed: [helloShown()] }).note!,
  seenAt: NOON,
};
export const nothing = { changes: [], problems: [], forgets: [], adopts: false };
