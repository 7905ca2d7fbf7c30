/** What a person reads when both sides disagree about somebody: why, and what can be done. */
import type { Fault } from '../../../domain/record.ts';

/**
 * Beyond the rows of the table. formerAddress: the opt-out stands under a former address of the
 * same CRM record. leftBefore: she left, and then her contact vanished. replacedChannel: she left
 * the channel that this one took over from. movedAway: the CRM has another address of hers by now.
 * remembered: she left, as the ledger knows. erased: she was forgotten on demand. vanishedBefore:
 * she was ours and vanished, as the ledger knows. protected: contacts.protect names the person.
 * optInsOff: policy.optIns is off. formerOptOut: under a former address of the same CRM record we
 * opted the person out, and the CRM does not take that back. stated: the CRM states an opt-out
 * under the address that it has of the person by now. renamed: the contact has another address on
 * the platform by now.
 */
export const beyond = {
  formerAddress: 19,
  leftBefore: 20,
  replacedChannel: 21,
  movedAway: 22,
  remembered: 23,
  erased: 24,
  vanishedBefore: 25,
  protected: 26,
  optInsOff: 27,
  formerOptOut: 28,
  stated: 29,
  renamed: 30,
} as const;

export function severalContacts(count: number, channel: string): Fault {
  return {
    reason: `${channel}: ${count} contacts on the platform share this address, so nobody is opted in`,
    fix: 'delete all but one of them on the platform',
  };
}

/** Why a row of the table is a conflict, in words, and what a person can do about it. */
export function conflictOf(row: number, channel: string, isDoubtful: boolean): Fault {
  const asTheyWish = 'record the opt-out in the CRM; only the person can come back';
  if (isDoubtful && bySubscription.has(row)) return doubtful(channel);
  switch (row) {
    case 9:
      return {
        reason: `${channel}: unsubscribed from all mail, blocked or suppressed on the platform`,
        fix: asTheyWish,
      };
    case 11:
    case beyond.vanishedBefore:
      return {
        reason: `${channel}: the contact vanished on the platform`,
        fix: 'remove the person from the CRM, or set policy.missing to recreate if they should come back',
      };
    case beyond.formerAddress:
      return {
        reason: `${channel}: the person left under a former address`,
        fix: asTheyWish,
      };
    case 16:
      return stillStated(channel, '');
    case beyond.formerOptOut:
      return stillStated(channel, 'former ');
    case beyond.leftBefore:
      return {
        reason: `${channel}: the person left, and then the contact vanished on the platform`,
        fix: asTheyWish,
      };
    case beyond.replacedChannel:
      return {
        reason: `${channel}: the person left the channel that this one replaces`,
        fix: asTheyWish,
      };
    case beyond.remembered:
      return {
        reason: `${channel}: the person left before, under a contact that is no longer the same`,
        fix: asTheyWish,
      };
    case beyond.erased:
      return {
        reason: `${channel}: the person was erased by \`forget\`, and is not brought back`,
        fix: 'remove the person from the CRM; `allow` takes the erasure back',
      };
    case beyond.renamed:
      return claimed(channel);
    case 14:
    case 18:
      return {
        reason: `${channel}: the subscription was taken away on the platform`,
        fix: asTheyWish,
      };
    default:
      return {
        reason: `${channel}: the person left this channel on the platform`,
        fix: asTheyWish,
      };
  }
}

/** Of somebody whose contact was renamed, where the CRM states an opt-out under the former name. */
export const renamedThere: Fault = {
  reason: 'the contact has another address on the platform; the opt-outs of this record are its',
  fix: 'give the person the same address on both sides',
};

function claimed(channel: string): Fault {
  return {
    reason: `${channel}: the opt-out is not sent: another CRM record has the contact's new address, and says in`,
    fix: 'find out who has that address, and correct the other record in the CRM',
  };
}

/** Row 16, of the address itself or of a former one. */
function stillStated(channel: string, former: string): Fault {
  const where = former && ' under a former address';
  return {
    reason: `${channel}: the CRM stated an opt-out${where}, and no record that stated it says in now`,
    fix: `record the opt-out in the CRM, or a later \`consentAt\`; if the person wants in: \`allow <${former}email> --reason …\``,
  };
}

/** Rows that go by what the platform shows of one channel. */
const bySubscription = new Set([14, 15, 17, 18]);

function doubtful(channel: string): Fault {
  return {
    reason:
      `${channel}: the platform shows the person as not subscribed, and nobody is known to have ` +
      'left: it may be the default of the channel, or a request of ours that had no answer',
    fix: 'ask the person; with policy.resubscribe: newer, a newer date of their will in the CRM opts them in',
  };
}

export function contradiction(count: number, channel: string): Fault {
  return {
    reason: `${channel}: ${count} CRM records of this address contradict each other; the opt-out counts`,
    fix: 'merge them in the CRM',
  };
}
