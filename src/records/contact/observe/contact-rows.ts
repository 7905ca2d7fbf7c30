/** The rows and changes of contacts with their decoded bodies. */
import type { z } from 'zod';
import type { Change } from '../../../domain/change.ts';
import type { DesiredRow, ObservedRow, RecordedRow } from '../../../domain/record.ts';
import { type Decoded, decoder } from '../../decoded-rows.ts';
import type { Renamed, States, Successor } from '../../record-type.ts';
import {
  desiredBody,
  enrolmentBody,
  observedBody,
  recordedBody,
  type DesiredContact,
  type ObservedContact,
  type RecordedContact,
} from './contact-state.ts';

export type DesiredContactRow = Decoded<DesiredRow, DesiredContact>;
export type ObservedContactRow = Decoded<ObservedRow, ObservedContact>;
export type RecordedContactRow = Decoded<RecordedRow, RecordedContact>;
export type ContactChange = Decoded<Change, z.infer<typeof enrolmentBody>>;

interface ContactRows {
  desired: DesiredContactRow;
  observed: ObservedContactRow;
  recorded: RecordedContactRow;
}

export type ContactStates = States<ContactRows>;
export type ContactSuccessor = Successor<ContactRows> & {
  /** The channels in which nothing is sent for the new address, because somebody said no. */
  barred?: ReadonlySet<string> | undefined;
};
export type ContactRenamed = Renamed<ContactRows>;

/** Decoders for the stored forms. Each throws if the body has another form. */
export const decodeContact = {
  desired: decoder(desiredBody),
  observed: decoder(observedBody),
  recorded: decoder(recordedBody),
  change: decoder(enrolmentBody),
};
