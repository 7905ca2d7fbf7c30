/** The gates that an action passes in this order; one that holds replaces it for the later ones. */
import { isOver, listed } from './do-not-contact-entries.ts';
import { hasMoved, isCarried, isForbidden } from './absent-people.ts';
import type { PersonFacts } from './person-facts.ts';
import { isTakenBack, isOperators } from './own-opt-outs.ts';
import { isNewer, isOurs, isTheirs, isBounce } from '../observe/observed-contact.ts';
import { hasLeftReplaced, isUndoneInReplaced, replacedBy } from './past-consent.ts';
import { renamedTargets } from './renamed-contact.ts';
import { statedAt } from '../observe/consent-time.ts';
import { type Action, type Cause, type ChannelFacts, rules, type Verdict } from './rules.ts';
import type { Stop } from '../../decision.ts';

export interface GateFacts {
  person: PersonFacts;
  channel: string;
  asked: ChannelFacts;
}

export interface Gate {
  id: string;
  /** States in words when the gate stops the previous decision. */
  asks: string;
  about: readonly Action[];
  holds(facts: GateFacts, verdict: Verdict): boolean;
  action: Action;
  /** Default: stated. */
  cause?: Cause;
  /** The setting that an operator has to change to get past the gate. */
  setting?: Stop;
  /** Whether somebody's word bars the channel; see `isBar`. */
  bars?: true;
}

const enrols: readonly Action[] = ['create', 'opt_in'];

export const gates: readonly Gate[] = [
  {
    id: 'unmanaged-out',
    asks: 'an operator decided to opt out a person who is gone from the CRM (`unmanaged --opt-out`)',
    about: ['conflict'],
    holds: ({ person: { states, isProtected }, channel, asked: { unmanaged } }) =>
      unmanaged !== undefined &&
      !isProtected &&
      states.certified &&
      !states.strays &&
      states.unmanagedOut?.includes(channel) === true,
    action: 'opt_out',
    cause: 'absence',
  },
  {
    id: 'channel-lost',
    asks: 'most members lost this channel at the same time, so the loss proves nothing about the person',
    about: [...enrols, 'conflict'],
    holds: ({ person, channel }) => person.states.lost.has(channel),
    action: 'nothing',
  },
  {
    id: 'protected',
    asks: 'contacts.protect covers the person, and the change is not an opt-out that the CRM states',
    about: [...enrols, 'opt_out', 'delete'],
    holds: ({ person }, { action, cause }) =>
      person.isProtected && !(action === 'opt_out' && cause === 'stated'),
    action: 'nothing',
    setting: 'protect',
  },
  {
    id: 'opt-ins-off',
    asks: 'policy.optIns is off',
    about: enrols,
    holds: ({ asked }) => asked.policy.optIns === 'off',
    action: 'nothing',
    setting: 'optIns',
  },
  {
    id: 'not-chosen',
    asks: 'the run is limited to other people (contacts.sample, --people)',
    about: enrols,
    holds: ({ person }) => person.states.unchosen === true,
    action: 'nothing',
    setting: 'sample',
  },
  {
    id: 'left-former-address',
    asks: 'the person unsubscribed, was blocked or complained under a former address (a bounce does not count)',
    about: enrols,
    holds: ({ person: { former, rules }, channel }) =>
      former.some(
        (past) =>
          isTheirs(past.channels[channel]) ||
          past.contacts.some((contact) => contact.left && !isBounce(contact)) ||
          hasLeftReplaced(past, channel, rules),
      ),
    action: 'conflict',
    bars: true,
  },
  {
    id: 'our-opt-out-former-address',
    asks: 'opted out by us under a former address, and the CRM does not withdraw that opt-out',
    about: enrols,
    holds: ({ person: { former, states }, channel }) =>
      former.some(({ channels }) => isCarried(channels[channel], channel, states)),
    action: 'conflict',
    bars: true,
  },
  {
    id: 'left-replaced-channel',
    asks: 'the person unsubscribed from the channel that this one replaces',
    about: enrols,
    holds: ({ person, channel }) => hasLeftReplaced(person.now, channel, person.rules),
    action: 'conflict',
    bars: true,
  },
  {
    id: 'undone-replaced',
    asks: '`undo` opted the person out of the channel that this one replaces, and the CRM has stated nothing else since',
    about: enrols,
    holds: ({ person, channel }) =>
      [person.now, ...person.former].some((one) => isUndoneInReplaced(one, channel, person)),
    action: 'conflict',
    bars: true,
  },
  {
    id: 'our-opt-out-recorded',
    asks: 'recorded as opted out by us, and no CRM record that stated the opt-out now states an opt-in',
    about: enrols,
    holds: ({ person: { now, states }, channel }) =>
      isOurs(now.channels[channel]) && !isTakenBack(now.channels[channel], channel, states),
    action: 'conflict',
    bars: true,
  },
  {
    id: 'left-before-vanishing',
    asks: 'the person unsubscribed, was blocked or suppressed before the contact vanished from the platform',
    about: ['create'],
    holds: ({ person: { recorded }, channel }) =>
      recorded !== undefined &&
      (isTheirs(recorded.channels[channel]) || recorded.contacts.some(({ left }) => left)),
    action: 'conflict',
    bars: true,
  },
  {
    id: 'renamed-away',
    asks: 'the contact has not vanished: the platform shows it under another address',
    about: ['create'],
    holds: ({ person }) => person.renamed.length > 0,
    action: 'conflict',
  },
  {
    id: 'erased',
    asks: 'according to the do-not-contact list, the person was erased on request',
    about: enrols,
    holds: (facts, { action }) => listedAs(facts, action) === 'erased',
    action: 'conflict',
    bars: true,
  },
  {
    id: 'left-before',
    asks: 'according to the do-not-contact list, the person unsubscribed, was blocked or suppressed before',
    about: enrols,
    holds: (facts, { action }) => listedAs(facts, action) === 'left-before',
    action: 'conflict',
    bars: true,
  },
  {
    id: 'vanished-before',
    asks: 'according to the do-not-contact list, the contact was ours and vanished (policy.missing: respect)',
    about: ['create'],
    holds: (facts, { action }) => listedAs(facts, action) === 'vanished-before',
    action: 'conflict',
  },
  {
    id: 'settled-out',
    asks: 'an operator resolved the channel as an opt-out (`resolve --out`), and the CRM has stated nothing later',
    about: ['nothing', ...enrols, 'conflict'],
    // An erasure stays, and so does an opt-out or delete that follows because the person is gone.
    holds: ({ person, channel, asked: { wanted, someIn, unmanaged } }, { by }) =>
      by !== 'erased' &&
      (wanted !== 'gone' || someIn || unmanaged !== undefined) &&
      person.operatorOut(channel) !== undefined,
    action: 'opt_out',
    bars: true,
  },
  {
    id: 'stated-for-new-address',
    asks: 'the CRM has a new address for the person and states an opt-out for it',
    about: ['nothing', ...enrols, 'opt_out', 'delete', 'conflict'],
    holds: ({ person, channel }) => isForbidden(person.states, channel),
    action: 'opt_out',
  },
  {
    id: 'address-replaced',
    asks: 'ours and not protected; the CRM has a new address, which is in place in every channel, and policy.deletes covers the old contact',
    about: ['nothing', 'opt_out'],
    holds: (facts, verdict) => facts.person.replaced && isMovedAway(facts, verdict),
    action: 'delete',
    cause: 'address',
  },
  {
    id: 'address-changed',
    asks: 'ours and not protected; the CRM has a new address, which is in place in this channel',
    about: ['nothing'],
    holds: isMovedAway,
    action: 'opt_out',
    cause: 'address',
  },
  {
    id: 'renamed-claimed',
    asks: 'opt-out wanted, not subscribed here; renamed on the platform to an address whose CRM record states an opt-in',
    about: ['nothing', 'opt_out'],
    holds: (facts, verdict) =>
      isRenamed(facts, verdict) && renamedTargets(facts.person.renamed, facts.channel).isClaimed,
    action: 'conflict',
  },
  {
    id: 'renamed',
    asks: 'opt-out wanted, not subscribed here; subscribed under a new address on the platform, for which the CRM has no opinion',
    about: ['nothing', 'opt_out'],
    holds: (facts, verdict) =>
      isRenamed(facts, verdict) &&
      renamedTargets(facts.person.renamed, facts.channel).contacts.length > 0,
    action: 'opt_out',
  },
  {
    id: 'several-contacts',
    asks: 'several contacts on the platform share this address',
    about: ['opt_in'],
    holds: ({ person }) => person.contacts.length > 1,
    action: 'conflict',
  },
  {
    id: 'uncertified',
    asks: 'the CRM was not read completely, so only opt-outs are sent',
    about: enrols,
    holds: ({ person }) => !person.states.certified,
    action: 'nothing',
  },
];

export interface AskedGate {
  gate: Gate;
  held: boolean;
}

/** Passes a verdict through the gates. Calls `tell` for each gate that was applied. */
export function passGates(
  facts: GateFacts,
  decided: Verdict,
  tell?: (asked: AskedGate) => void,
): { verdict: Verdict; stop: Stop | undefined } {
  let verdict = decided;
  let stop: Stop | undefined;
  for (const gate of gates) {
    if (!gate.about.includes(verdict.action)) continue;
    const held = gate.holds(facts, verdict);
    tell?.({ gate, held });
    if (!held) continue;
    const { action, cause = 'stated', id: by } = gate;
    verdict = { action, cause, by };
    stop ??= gate.setting;
  }
  return { verdict, stop };
}

/**
 * Returns whether a verdict is an answer for good: the person, the CRM or an operator said no. A
 * setting, a lost channel, an incomplete reading, and a contact that vanished, was renamed or has a
 * duplicate are no answers.
 */
export function isBar({ by }: Verdict): boolean {
  return ruleNamed(by)?.bars === true;
}

export function ruleNamed(id: string | null) {
  return [...rules, ...gates].find((one) => one.id === id);
}

/** Returns why the list forbids the action, also for the replaced channel unless outgrown. */
function listedAs({ person, channel }: GateFacts, action: Action) {
  const { states, rules, seen, now } = person;
  if (states.entries.length === 0) return undefined;
  // An operator's opt-out has a gate of its own.
  const entries = states.entries.filter((entry) => !isOver(entry, seen) && !isOperators(entry));
  const replaced = replacedBy(channel, rules, now.outgrown);
  const parts = [
    { part: channel, newer: newerWill(person, channel) },
    ...(replaced === undefined ? [] : [{ part: replaced, newer: undefined }]),
  ];
  const found = parts.map((one) => listed(entries, { op: action, ...one }, rules.policy));
  return found.find((one) => one !== undefined);
}

/** Returns whether nothing else happens to the old contact, and the new one is in place. */
function isMovedAway({ person, channel }: GateFacts, { action, cause }: Verdict): boolean {
  const { states, replaced, isProtected, status } = person;
  if (states.successors.length === 0 || !status.owned || isProtected) return false;
  const isOpen = action === 'nothing' || (replaced && action === 'opt_out' && cause === 'absence');
  // Who left all mail gets none at the old address either, so a bar at the new one changes nothing.
  const barsCount = replaced || !status.left;
  return isOpen && hasMoved(states, channel, status.due, barsCount);
}

/** Returns whether a stated opt-out may have to follow the contact to another address. */
function isRenamed({ person, asked }: GateFacts, { action, by }: Verdict): boolean {
  const isOpen = action === 'nothing' || by === 'stated-out-one-in';
  return isOpen && asked.wanted === 'opt_out' && person.renamed.length > 0;
}

/** Returns when the CRM stated what is later than the opt-out and counts by the policy. */
export function newerWill(facts: PersonFacts, channel: string): number | undefined {
  const { states, rules, now } = facts;
  if (rules.policy.resubscribe === 'never') return undefined;
  const at = statedAt(states.desired, channel);
  return at !== null && isNewer(at, now.channels[channel], states.by) ? at : undefined;
}
