/** Describes what the snapshot records of one contact or template, as a document. */
import { factsIn } from '../../engine/context/platform-knowledge.ts';
import { isDoubtful } from '../../records/contact/consent/platform-opt-outs.ts';
import {
  decodeContact,
  type Membership,
  type RecordedContact,
} from '../../records/contact/observe/contact-state.ts';
import { decodeTemplate } from '../../records/template/template-state.ts';
import type { PlatformFacts } from '../../records/platform-facts.ts';
import type { RecordedRow } from '../../domain/record.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { resetMark } from '../../store/tables/recorded-state.ts';
import { membershipOf } from '../lookup/person-document.ts';
import type { Names } from '../lookup/person-names.ts';
import { instantOrNull } from '../../compose/output/format-values.ts';

/** The snapshot, and how records are named. */
export interface Recording {
  snapshot: Snapshot;
  names: Names;
}

/** A recorded row as a document. */
export type RecordedEntry = ReturnType<ReturnType<typeof entriesIn>>;

/** Returns a function that describes recorded rows. */
export function entriesIn({ snapshot, names }: Recording) {
  const facts = factsIn(snapshot);
  // An id is named like a person, because a CRM may use the address as an id.
  const idName = (id: string): string => names({ kind: 'contact', key: id });
  return (row: RecordedRow) => {
    const { kind, key, ownership, id, seenAt, shown, desired } = row;
    return {
      kind,
      key: names(row),
      ownership,
      /** The platform's id; null if the record has vanished there. */
      id: id ?? null,
      crmIds: snapshot.recorded.originsOf(kind, key).map(idName),
      /** Null if no run has seen it on the platform. */
      seenAt: instantOrNull(seenAt === 0 ? null : seenAt),
      /** Whether the last run about the record left nothing to do. */
      settled: desired !== undefined,
      /** Whether the next full run compares the record with the platform, whatever that shows. */
      readAgain: shown === undefined || shown === resetMark,
      /** Whether `state reset` was called, and no run has read the person since. */
      reset: shown === resetMark,
      /** The name of a template on the platform; null for a person. */
      name: kind === 'contact' ? null : nameOf(row),
      ...contactOf(kind === 'contact' ? decodeContact.recorded(row).value : nobody, {
        idName,
        facts,
      }),
    };
  };
}

type IdName = (id: string) => string;

function contactOf(
  { channels, contacts, defaults, left, ...body }: RecordedContact,
  { idName, facts }: { idName: IdName; facts: PlatformFacts },
) {
  return {
    channels: Object.fromEntries(
      Object.entries(channels).map(([channel, is]) => {
        const doubtful = isDoubtful(is, channel, facts);
        return [channel, { ...membershipOf(is), doubtful, ...madeBy(is, idName) }];
      }),
    ),
    /** Opted out of all mail, blocked or suppressed; null if not. */
    allMail: contacts.some((contact) => contact.left)
      ? {
          causes: [...new Set(contacts.flatMap(({ causes = [] }) => causes))],
          after: instantOrNull(left?.after),
          until: instantOrNull(left?.by),
        }
      : null,
    /** The channels in which creating the contact left an opt-out that nobody made. */
    defaults,
    /** The times of consent in the CRM that were in the future when they were first read. */
    earlyConsents: (body.early ?? []).map(instantOrNull),
    protected: body.protected ?? false,
    /** Whether `allow` took back an erasure, and the platform was not read since. */
    allowed: body.allowed ?? false,
    /** Channels that the person joined after leaving the channels that these replace. */
    outgrown: body.outgrown,
    contacts: contacts.map((contact) => ({ ...contact, causes: contact.causes ?? [] })),
    /** The person's contacts that have another address on the platform now. */
    renamed: (body.renamed ?? []).map(({ id }) => id),
  };
}

function madeBy({ cause, acked, stated = [], bound = [], ...is }: Membership, idName: IdName) {
  const { released = false, settled } = is;
  return {
    /** Why the mirror made the opt-out: stated, absence, flag or address; null if it did not. */
    cause: cause ?? null,
    acknowledgedAt: instantOrNull(acked),
    /** The CRM records that state the opt-out, and all those to which it is bound. */
    statedBy: stated.map(idName),
    boundTo: bound.map(idName),
    /** Whether `allow` released the opt-out. */
    released,
    /** How an operator resolved the opt-out; null if nobody did. */
    resolved: settled ? resolvedBy(settled, idName) : null,
  };
}

function resolvedBy(
  { stating = [], at, ...settlement }: NonNullable<Membership['settled']>,
  idName: IdName,
) {
  /** `inBy`: the CRM records that stated the opt-in. */
  return { ...settlement, at: instantOrNull(at), inBy: stating.map(idName) };
}

function nameOf(row: RecordedRow): string | null {
  return decodeTemplate.recorded(row).value.shown.fields.name ?? null;
}

/** A template has nothing of what is recorded of a person. */
const nobody: RecordedContact = { channels: {}, contacts: [], defaults: [], outgrown: [] };
