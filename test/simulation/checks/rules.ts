/** Every rule that the checkers judge by, in words: what must hold, whatever happens. */
export const rules = [
  'only known requests are sent',
  'people are opted in only as the CRM wants',
  'after an uncertified reading only opt-outs are sent',
  'people on the platform are not opted in by email',
  'contacts that share an address are not opted in',
  'people who unsubscribed from all mail are not opted in',
  'subscribed people are not opted in again',
  'people who unsubscribed from a channel are not opted in to it',
  'an opt-out that one record stated is not taken back by another',
  'vanished contacts are not created again unless policy says so',
  'unsubscribed contacts that vanished are not created again',
  'unsubscribed contacts that were deleted are not created again',
  'people removed from a channel are not put back',
  'unsubscribed people removed from a channel are not put back',
  'people unsubscribed under a former address are not opted in',
  'people are opted out only as the CRM wants',
  'opt-outs stated by the CRM hold after a full run',
  'nobody is opted out twice',
  'people opted out for absence were missing for long enough',
  'people opted out for absence were in the CRM once',
  'deleted people who are subscribed and not ours are listed',
  'deleted people who are not ours are not opted out for absence',
  'people reported as unsubscribed did unsubscribe',
  'a run removes no more people than the guard allows',
  'a run opts in no more people than the guard allows',
  'most stated opt-outs are not withdrawn at once',
  'answers that change places wait',
  'a run sends no more stated opt-outs than the guard allows',
  'a run changes no more templates than the guard allows',
  'a held opt-out waits for its time or an approval',
  'an opt-out is not held longer than its time',
  'people with a held opt-out are not opted in',
  'changes stay held that were not shown, or passed before',
  'held changes stay held until they are approved',
  'approved and shown changes are not held any more',
  'forgotten people are not opted in',
  'forgotten people are not opted in under another address',
  'forgetting a person touches nobody else',
  'forgotten people are not on the platform',
  'forgotten people leave no trace in the snapshot',
  'partly forgotten people can be forgotten again',
  'people are deleted only as policy says',
  'a fast run deletes only flagged or replaced contacts',
  'missing people are deleted only after the configured time',
  'an old address is not deleted before the new one exists',
  'adopted contacts are deleted only where policy says so',
  'an existing template is not created',
  'only templates of the source are created',
  'a vanished template is not created again',
  'only templates of the source are changed',
  'a template that was edited by hand is left alone',
  'templates that share a name are not changed',
  'changes recorded as ours were ours',
  'recorded observations were true when observed',
  'acknowledged changes were done',
  'no run ends with a change marked as sent',
  'no unneeded request is sent',
  'nothing is sent after the key was refused',
  'a plan changes nothing on the platform',
  'a plan changes nothing in the snapshot',
  'a run of one record type requests nothing of the other',
  'when too many changes are refused only opt-outs continue',
  'a second process writes nothing',
  'an undamaged snapshot is not set aside',
  'the audit log is whole',
  'the audit log has no gap',
  'every write is in the audit log',
  'no write is in the audit log twice',
  'a write in the audit log has a rule and a run',
  'a process that ends has nothing left to audit',
  'forgotten people leave no trace in the audit log',
  'the same organization is not taken for another',
  'an unanswered change is not sent again before a look',
  'no run gives up',
  'in the end nothing remains to do',
  'in the end no run fails',
  'in the end the journal is closed',
  'in the end the listing is certified',
  'in the end every opt-out of the CRM holds',
  'in the end people who cannot be opted out are reported',
  'in the end nobody is subscribed under a former address',
  'in the end people who are not subscribed are reported',
  'in the end people who are not subscribed have a reason',
  'in the end the platform shows what is recorded',
  'a rejected change is not sent',
  'a rejected change does not await approval',
  'a rejection holds no stated opt-out back',
  'an operator decides only about what was chosen',
  'stated opt-outs cannot be rejected',
  'a decision of an operator sends nothing',
  'an opt-in that an operator resolves was nobody’s opt-out',
  'people whom an operator resolved as out are not opted in',
  'people whom an operator resolved as out are out',
  'a limited run opts in the chosen people alone',
  'a limited run takes nobody for gone',
  'a reset loses no opt-out',
  'every decision is in the audit log once',
  'what was undone stays so until the CRM states something else',
  'only what a run opted in is taken back',
  'many changes of an occasion begin with the slice of a canary',
  'nobody outside the slice is changed while a canary is open',
] as const;
export type Rule = (typeof rules)[number];

/**
 * What holds whatever snapshot is put back. The other checkers know what a run has learnt, and not
 * what of that a backup holds.
 */
export const restoredRules: ReadonlySet<Rule> = new Set([
  'people who unsubscribed from all mail are not opted in',
  'people who unsubscribed from a channel are not opted in to it',
  'people unsubscribed under a former address are not opted in',
  'people reported as unsubscribed did unsubscribe',
  'forgotten people are not opted in',
  'every write is in the audit log',
  'the audit log is whole',
  'no run gives up',
]);

/** A rule was broken: the simulation has found something. */
class Wrong extends Error {
  override readonly name = 'Wrong';
  readonly rule: Rule;

  constructor(rule: Rule, what: string) {
    super(what);
    this.rule = rule;
  }
}

/** Puts a rule to the test: one case of it, and how it is broken, if it is. Throws Wrong. */
export type Judge = (rule: Rule, wrong: string | false) => void;

/** `cases` is told of every case. */
export function judgeTelling(cases: (rule: Rule) => void): Judge {
  return (rule, wrong) => {
    cases(rule);
    if (wrong !== false) throw new Wrong(rule, wrong);
  };
}

/** Returns the broken rule, or the message of a bug without addresses and numbers. */
export function ruleOf(error: Error): string {
  if (error instanceof Wrong) return error.rule;
  return `${error.name}: ${error.message.replaceAll(/\S*(?:@|\d)\S*/g, '…')}`;
}
