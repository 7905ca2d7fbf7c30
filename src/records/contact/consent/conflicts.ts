/** Explains why the two sides disagree about a person, and how to resolve it. */
import { decideUnmanaged, protectedUnmanaged } from '../../../domain/unmanaged-people.ts';
import type { Complaint } from '../../../domain/problem-causes.ts';

function recordOptOut(cause: Complaint['cause'], reason: string): Complaint {
  return { cause, reason, fix: 'record the opt-out in the CRM; only the person can come back' };
}

interface Subject {
  channel: string;
  /** Whether it is uncertain that the recorded opt-out was a person's decision. */
  isDoubtful: boolean;
  contacts: number;
  /** Whether a contact of the person now has another address on the platform. */
  isRenamed: boolean;
  /** Whether contacts.protect covers the person; default: no. */
  isProtected?: boolean;
}

const deletedThere =
  'the CRM marks the person as deleted; subscribed on the platform, not managed here';
const leftOutThere =
  'contacts.include leaves the person out; subscribed on the platform, not managed here';

const vanished: Complaint = {
  cause: 'vanished',
  reason: 'the contact vanished from the platform',
  fix:
    'remove the person from the CRM; policy.missing: recreate brings back everybody who vanished, ' +
    'also those who had themselves deleted',
};
const takenAway = recordOptOut(
  'subscription-removed',
  'the subscription was removed on the platform',
);

const undone: Complaint = {
  cause: 'undone',
  reason: '`undo` took our opt-in back, and the CRM has stated nothing else since',
  fix:
    'nothing, if that is as it should be; otherwise change the statement in the CRM, undo the ' +
    'undo, or have `crm-mirror resolve` opt the person in',
};

/** The conflicts by the rule or gate that found them; any other rule or gate uses `leftChannel`. */
const conflicts: Record<string, Complaint> = {
  'left-all-mail': recordOptOut(
    'left-all-mail',
    'unsubscribed from all mail, blocked or suppressed on the platform',
  ),
  'vanished-respect': vanished,
  'vanished-before': vanished,
  'left-former-address': recordOptOut(
    'left-former-address',
    'the person opted out under a former address',
  ),
  'our-opt-out-stands': stillStated(''),
  'our-opt-out-recorded': stillStated(''),
  'our-opt-out-former-address': stillStated('former '),
  undone,
  'undone-replaced': undone,
  'renamed-away': {
    cause: 'renamed',
    reason: 'the contact has another address on the platform, so it is not created again',
    fix: 'give the person the same address on both sides',
  },
  'left-before-vanishing': recordOptOut(
    'left-before',
    'the person opted out, and then the contact vanished from the platform',
  ),
  'left-replaced-channel': recordOptOut(
    'left-replaced-channel',
    'the person opted out of the channel that this one replaces',
  ),
  'left-before': recordOptOut(
    'left-before',
    'the person opted out before, as another contact on the platform',
  ),
  erased: {
    cause: 'erased',
    reason: 'the person was erased by `forget`, and is not brought back',
    fix: 'remove the person from the CRM; `allow` takes the erasure back',
  },
  'renamed-claimed': {
    cause: 'renamed-claimed',
    reason:
      "the opt-out is not sent: another CRM record has the contact's new address, and says in",
    fix: 'find out who has that address, and correct the other record in the CRM',
  },
  'deleted-unmanaged': { cause: 'deleted-subscribed', reason: deletedThere, fix: decideUnmanaged },
  'out-of-scope-unmanaged': {
    cause: 'out-of-scope-subscribed',
    reason: leftOutThere,
    fix: decideUnmanaged,
  },
  'membership-removed': takenAway,
  'left-then-removed': takenAway,
};

/** The same of protected people, where contacts.protect makes a difference. */
const protectedConflicts: Record<string, Complaint> = {
  'deleted-unmanaged': {
    cause: 'deleted-protected',
    reason: `${deletedThere}, and protected`,
    fix: protectedUnmanaged,
  },
  'out-of-scope-unmanaged': {
    cause: 'out-of-scope-protected',
    reason: `${leftOutThere}, and protected`,
    fix: protectedUnmanaged,
  },
};

const leftChannel = recordOptOut(
  'left-channel',
  'the person opted out of this channel on the platform',
);

/** The rules that depend on what the platform shows for one channel. */
const byShown = new Set([
  'membership-removed',
  'left-channel',
  'left-or-unknown',
  'left-then-removed',
]);

const doubtful: Complaint = {
  cause: 'opt-out-doubtful',
  reason:
    'the platform shows the person as not subscribed, and no opt-out is known: ' +
    'it may be the default of the channel, or a request of ours that had no answer',
  fix:
    'ask the person, and record a no with `crm-mirror resolve --out`, a yes with `--in`; where that ' +
    'is refused, the person opts in on the platform; or, with policy.resubscribe: newer, a later ' +
    'date of consent in the CRM opts them in',
};

export function conflictOf(by: string, subject: Subject): Complaint {
  const { channel, isDoubtful, contacts, isRenamed, isProtected } = subject;
  if (by === 'several-contacts') {
    return {
      cause: 'several-contacts',
      about: 'several contacts on the platform share one address, so nobody is opted in',
      reason: `${channel}: ${contacts} contacts on the platform share this address, so nobody is opted in`,
      fix: 'delete all but one of them on the platform, and keep the one that opted out',
    };
  }
  const own = (isProtected && protectedConflicts[by]) || conflicts[by];
  const known = isRenamed && own?.cause === 'vanished' ? renamedAway : own;
  const found = isDoubtful && byShown.has(by) ? doubtful : (known ?? leftChannel);
  return { ...found, about: found.reason, reason: `${channel}: ${found.reason}` };
}

/** A contact has another address on the platform, and the CRM states an opt-out for this one. */
export const renamedThere: Complaint = {
  cause: 'renamed',
  reason: 'the contact has another address on the platform; the opt-outs of this record are its',
  fix: 'give the person the same address on both sides',
};

/** The CRM states an opt-in for the former address of a contact. */
const renamedAway: Complaint = {
  ...renamedThere,
  reason: 'the contact has another address on the platform, so nobody is opted in with this one',
};

/** Returns the fault of records with one address of which some opt in and some opt out. */
export function contradiction(count: number, channel: string): Complaint {
  return {
    cause: 'records-contradict',
    about: 'CRM records of one address contradict each other; the opt-out counts',
    reason: `${channel}: ${count} CRM records of this address contradict each other; the opt-out counts`,
    fix: 'merge them in the CRM',
  };
}

function stillStated(former: string): Complaint {
  const where = former && ' under a former address';
  // `resolve` reaches this channel alone, but cannot withdraw what was sent for another address.
  const narrow = former ? '' : '`crm-mirror resolve`, or ';
  const wide = `\`allow <${former}email> --reason …\`, which ends every entry of the person`;
  return {
    cause: 'own-opt-out',
    reason: `the CRM stated an opt-out${where}, and no record that stated it says in now`,
    fix: `record the opt-out in the CRM, or a later \`consentAt\`; if the person wants in: ${narrow}${wide}`,
  };
}
