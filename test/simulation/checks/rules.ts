/** Every rule that the checkers judge by, in words: what must hold, whatever happens. */
export const rules = [
  'nothing is asked for but what is allowed',
  'who is opted in is wanted in by the CRM',
  'on an uncertified reading there are only opt-outs',
  'who is on the platform is not opted in by email',
  'where contacts share an address nobody is opted in',
  'who left all mail is not opted in',
  'who is in is not opted in again',
  'who left a channel is not opted in to it',
  'what one record has stated no other one takes back',
  'who vanished is not made again without leave',
  'who left and then vanished is not made again',
  'who left and was deleted is not made again',
  'who was taken out is not put back',
  'who left and was then taken out is not put back',
  'who left under a former address is not opted in',
  'an opt-out is wanted by the CRM',
  'whom the CRM forbids is out when a full run has ended',
  'nobody is opted out a second time',
  'who is taken out for absence has left the CRM for long enough',
  'who is taken out for absence was in the CRM once',
  'who is reported as having left has left',
  'no more leave in a run than a guard lets pass',
  'no more are brought in in a run than a guard lets pass',
  'no more stated opt-outs leave in a run than a guard lets pass',
  'no more templates are changed in a run than a guard lets pass',
  'a stated opt-out that is held waits for its time or an approval',
  'a stated opt-out is not held for longer than its time',
  'who is held out is not opted in',
  'who was not shown stays held, and who passed once',
  'whom a run held stays held until that is approved',
  'what was approved and shown is held no longer',
  'who was forgotten is not brought in',
  'who was forgotten is not brought in under another address',
  'where somebody is forgotten nobody else is touched',
  'who was forgotten is not on the platform',
  'who was forgotten leaves no trace in the snapshot',
  'who was not wholly forgotten can be forgotten again',
  'nobody is deleted but where policy says so',
  'only who is flagged or replaced is deleted in a fast run',
  'who is missing is deleted only so long after the opt-out',
  'who moved is not deleted before the new address is there',
  'whom we only adopted is deleted only where policy says so',
  'a template that is there is not made',
  'a template is made that the source names',
  'a template that vanished is not made again',
  'a template is changed that the source names',
  'a template that was edited by hand is left alone',
  'where templates share a name none is changed',
  'what is recorded as our doing was our doing',
  'what is recorded as seen was there to see',
  'what is acknowledged was done',
  'no run leaves a change marked as sent',
  'no more requests leave than are needed',
  'nothing leaves once the key was refused',
  'a plan writes nothing on the platform',
  'a plan writes nothing in the snapshot',
  'a run of one kind asks for nothing of the other',
  'where too many are refused only opt-outs go on',
  'no second process writes',
  'a whole snapshot is not set aside',
  'its own organization is not taken for another',
  'nothing unanswered is sent again before anybody looked',
  'no run gives up',
  'in the end nothing is left to do',
  'in the end no run fails',
  'in the end the journal is closed',
  'in the end the listing is certified',
  'in the end an opt-out of the CRM holds',
  'in the end who cannot be opted out is named',
  'in the end nobody is left in under a former address',
  'in the end who is not in is named',
  'in the end who is not in has a reason',
  'in the end what is recorded is shown',
] as const;
export type Rule = (typeof rules)[number];

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

/** What went wrong, without whom or how often: of a bug, its message so. */
export function ruleOf(error: Error): string {
  if (error instanceof Wrong) return error.rule;
  return `${error.name}: ${error.message.replaceAll(/\S*(?:@|\d)\S*/g, '…')}`;
}
