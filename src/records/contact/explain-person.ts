/** Explains a decision about a person: which rules and gates were asked, and what they said. */
import { decodedStates } from '../decoded-rows.ts';
import type { Subscription } from '../../platform/request-schemas.ts';
import type { States, Stop } from '../record-type.ts';
import { channelFacts, factsOf } from './consent/facts.ts';
import type { PersonRules } from './consent/person-facts.ts';
import { type AskedGate, passGates } from './consent/gates.ts';
import {
  type ChannelFacts,
  decideChannel,
  type PersonStatus,
  type Rule,
  ruleFor,
  rules as table,
  type Verdict,
} from './consent/rules.ts';
import { type Entry, type Settlement, settlement } from '../../domain/do-not-contact.ts';
import { decodeContact, type Membership } from './observe/contact-state.ts';
import { strictestOf } from './observe/strictest-consent.ts';

export interface ExplainedPerson {
  status: PersonStatus;
  channels: ExplainedChannel[];
}

export interface ExplainedChannel {
  channel: string;
  asked: ChannelFacts;
  /** The rules in order, up to the one that matches; all rules if none matches. */
  tried: { rule: Rule; matches: boolean }[];
  gates: AskedGate[];
  verdict: Verdict;
  /** What the platform shows, whosever contact it is; of a gone person, `asked` has only ours. */
  shows: Subscription | undefined;
  /** How an operator settled the channel, while that holds; null if nobody did. */
  settlement: (Settlement & { as: 'in' | 'out' }) | null;
  /** The setting that prevents a change in the channel; undefined if there is none. */
  stop: Stop | undefined;
}

/** Explains a decision by applying the same rules and gates to the same facts as `decidePerson`. */
export function explainPerson(states: States, rules: PersonRules): ExplainedPerson {
  const facts = factsOf(decodedStates(states, decodeContact), rules);
  return {
    status: facts.status,
    channels: rules.channels.map((channel) => {
      const asked = channelFacts(facts, channel);
      const matching = ruleFor(asked);
      const last = matching ? table.findIndex(({ id }) => id === matching.id) : table.length;
      const tried = table.slice(0, last + 1).map((rule, at) => ({ rule, matches: at === last }));
      const tested: AskedGate[] = [];
      const decided = decideChannel(asked);
      const passed = passGates({ person: facts, channel, asked }, decided, (one) =>
        tested.push(one),
      );
      const settlement = settlementOf(facts.now.channels[channel], facts.operatorOut(channel));
      const shows = strictestOf(facts.contacts, channel);
      return { channel, asked, shows, tried, gates: tested, settlement, ...passed };
    }),
  };
}

/** Returns how an operator settled a channel, or null; of an unreadable note, only the time. */
function settlementOf(
  membership: Membership | undefined,
  entry: Entry | undefined,
): (Settlement & { as: 'in' | 'out' }) | null {
  if (entry) {
    const none = { at: entry.by, by: '', reason: '', evidence: '' };
    const found = settlement.safeParse(JSON.parse(entry.note ?? 'null'));
    return { as: 'out', ...(found.success ? found.data : none) };
  }
  const settled = membership?.is === 'opt_out' ? membership.settled : undefined;
  return settled ? { as: 'in', ...settlement.parse(settled) } : null;
}
