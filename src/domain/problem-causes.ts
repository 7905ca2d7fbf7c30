/** The causes of problems, by class: stable words for programs, each for one thing to do. */
export const problemCauses = {
  invalid: [
    'opt-out-unreadable',
    'unknown-word',
    'date-in-future',
    'no-single-value',
    'id-missing',
    'id-shared',
    'address-missing',
    'address-invalid',
    'consent-time-unreadable',
    'condition-failed',
    'unreadable-record',
    'template-invalid',
  ],
  conflict: [
    'records-contradict',
    'left-all-mail',
    'left-channel',
    'left-replaced-channel',
    'left-before',
    'left-former-address',
    'subscription-removed',
    'opt-out-doubtful',
    'own-opt-out',
    'undone',
    'vanished',
    'erased',
    'several-contacts',
    'renamed',
    'renamed-claimed',
    'channel-lost',
    'deleted-subscribed',
    'deleted-protected',
    'out-of-scope-subscribed',
    'out-of-scope-protected',
    'template-edited',
    'template-differs',
    'template-vanished',
    'template-undone',
  ],
  rejected: [
    'opt-out-refused',
    'platform-refused',
    'crm-refused',
    'template-name-shared',
    'template-too-deep',
    'template-untested',
  ],
  held: ['awaiting-approval'],
} as const;

export type ProblemCause = (typeof problemCauses)[keyof typeof problemCauses][number];

/** What is wrong with a record, and how to mend it. */
export interface Complaint extends Pick<ProblemCommon, 'cause' | 'about'> {
  reason: string;
  fix: string;
}

/** What a problem shares with other problems of the same cause. */
export interface ProblemCommon {
  cause: ProblemCause;
  /** The reason without what belongs to one record only. If undefined, it is the reason itself. */
  about?: string | undefined;
  option?: string | undefined;
  /** The unknown value, cut short; undefined for a list or an object. It may be personal data. */
  value?: string | undefined;
}
