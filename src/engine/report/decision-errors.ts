/** Says why a plan cannot be approved or rejected. */
import { Invalid } from '../../domain/errors.ts';
import { countWords } from './guard-text.ts';

/** Returns the error for rejecting a plan of `undo`. */
export function undoNotRejectable(undoes: string): Invalid {
  return new Invalid(`only \`crm-mirror undo ${undoes}\` makes these changes`, {
    fix: 'nothing: if it is not called again, nothing of this is done',
  });
}

/** States that nothing of the plan is left to approve or reject. */
export function nothingLeft(plan: string, to: 'approve' | 'reject' = 'approve'): string {
  return `nothing of the plan ${plan} is left to ${to}: it was done, rejected, or is no longer wanted`;
}

/**
 * Returns the error for a plan without held changes, and names the plans that can be approved
 * instead.
 */
export function unknownPlan(
  current: readonly { plan: string }[],
  plan: string,
  own?: string,
): Invalid {
  const mine = own === undefined ? '' : `, and this run plans ${own}`;
  const reason = `no change awaits approval under ${plan}${mine}`;
  if (current.length === 0) return new Invalid(`${reason}; nothing awaits approval at all`);
  const now = current.map((one) => one.plan).join(', ');
  const fix = `approve one of these: ${now}; \`crm-mirror status\` says what they are`;
  return new Invalid(reason, { fix });
}

/** Returns the error for rejecting opt-outs that the CRM states. */
export function notRejectable(people: number): Invalid {
  const reason = `${countWords('contact', people)} to be opted out because the CRM says so cannot be rejected`;
  const fix =
    'correct the CRM, or approve them; to reject the other changes, name them with --guard, --op, ' +
    '--channel or --people';
  return new Invalid(reason, { fix });
}
