/** Why a person is decided upon as they are, channel by channel. */
import type { Subscription } from '../../../platform/request-schemas.ts';
import { decodedStates } from '../../decoded-rows.ts';
import type { States, Stop } from '../../record-type.ts';
import { rules as table, type Person, type Rule, type Verdict } from './consent-rules.ts';
import { factsOf, type PersonRules } from './person-facts.ts';
import { judge } from './person-decision.ts';
import { decodeContact } from '../observe/contact-rows.ts';
import type { Membership } from '../observe/contact-state.ts';
import type { DesiredSubscription } from '../observe/strictest-consent.ts';

export interface Explained {
  person: Person;
  channels: ExplainedChannel[];
}

export interface ExplainedChannel {
  channel: string;
  desired: DesiredSubscription;
  recorded: Membership | undefined;
  observed: Subscription | undefined;
  /** The rules in their order, up to the one that matches; all of them where none does. */
  tried: TriedRule[];
  /** Of another row than the last tried where something beyond the table outweighs that. */
  verdict: Verdict;
  /** The setting that keeps the channel from being changed; undefined: none does. */
  stop: Stop | undefined;
}

export interface TriedRule extends Pick<Rule, 'row' | 'asks'> {
  matches: boolean;
}

/** The same facts, asked of the same rules, as `decidePerson` decides by. */
export function explainPerson(states: States, rules: PersonRules): Explained {
  const { channels, policy } = rules;
  const facts = factsOf(decodedStates(states, decodeContact), rules);
  const { person } = facts;
  return {
    person,
    channels: channels.map((channel) => {
      const { asked, verdict, stop } = judge(facts, channel);
      const { desired, recorded, observed } = asked;
      const tried = triedBy({ states: asked, person, policy });
      return { channel, desired, recorded, observed, tried, verdict, stop };
    }),
  };
}

function triedBy(known: Parameters<Rule['matches']>[0]): TriedRule[] {
  const last = table.findIndex(({ matches }) => matches(known));
  const tried = last < 0 ? table : table.slice(0, last + 1);
  return tried.map(({ row, asks }, at) => ({ row, asks, matches: at === last }));
}
