/** What is wrong with single templates. */
import { mostLevels } from '../../domain/values/lossless-json.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { ObservedTemplate } from './template-state.ts';

type Found = Pick<RecordProblem, 'cause' | 'about' | 'reason' | 'fix'>;

function problem(key: string, kind: RecordProblem['class'], fault: Found): RecordProblem {
  return { kind: 'template', key, class: kind, part: '', ...fault };
}

/** Returns the problem of a name that several templates have. */
export function doubled(key: string, shown: ObservedTemplate[]): RecordProblem {
  const ids = shown.map((template) => template.id).toSorted();
  return problem(key, 'rejected', {
    cause: 'template-name-shared',
    about: 'several templates on the platform have this name',
    reason: `${shown.length} templates on the platform have this name: ${ids.join(', ')}`,
    fix: 'rename or remove all but one of them on the platform',
  });
}

/** Returns the problem of a template that is nested too deeply. */
export function incomparable(key: string, { id }: Pick<ObservedTemplate, 'id'>): RecordProblem {
  return problem(key, 'rejected', {
    cause: 'template-too-deep',
    about: `the content on the platform is nested more than ${mostLevels} levels deep and cannot be compared`,
    reason: `the content on the platform (${id}) is nested more than ${mostLevels} levels deep and cannot be compared`,
    fix: 'nest it less deeply on the platform, or remove it there',
  });
}

/** Returns the problem of a template that was found with other fields. */
export function differing(key: string, fields: string[]): RecordProblem {
  return problem(key, 'conflict', {
    cause: 'template-differs',
    about: 'found on the platform with other fields; left as it is',
    reason: `found on the platform with other ${fields.join(', ')}; left as it is`,
    fix: 'it is written when the source next changes, or set policy.templates to overwrite',
  });
}

/** Returns the problem of a template that was edited on the platform. */
export function edited(key: string, fields: string[]): RecordProblem {
  return problem(key, 'conflict', {
    cause: 'template-edited',
    about: 'was edited on the platform; left as it is',
    reason: `was edited on the platform (${fields.join(', ')}); left as it is`,
    fix: 'take the edit into the source, or set policy.templates to overwrite',
  });
}

/** Returns the problem of a template that vanished on the platform. */
export function gone(key: string): RecordProblem {
  return problem(key, 'conflict', {
    cause: 'template-vanished',
    reason: 'vanished on the platform; not made again',
    fix: 'remove it from the source, or set policy.templates to overwrite',
  });
}

/** Returns the problem of a template in an earlier version, which the source does not state. */
export function putBack(key: string): RecordProblem {
  return problem(key, 'conflict', {
    cause: 'template-undone',
    reason: '`undo` put an earlier version back, and the source has not changed since',
    fix: 'nothing, if that is as it should be; otherwise change the source, or undo the undo',
  });
}
