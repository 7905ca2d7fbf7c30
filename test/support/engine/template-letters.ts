/** Templates on both sides of a mirror. */
import fc from 'fast-check';
import { canonicalJson } from '../../../src/domain/record.ts';
import type { Stage } from './engine-stage.ts';

/** What may be true of one template on both sides before a run. */
export const letter = fc.record({
  crm: fc.constantFrom('absent', 'bare', 'content', 'whole'),
  platform: fc.constantFrom('absent', 'equal', 'differs', 'twice'),
});
type Letter = typeof letter extends fc.Arbitrary<infer T> ? T : never;

const content = [{ type: 'text', text: 'Dear {{name}}, {{ city }} is waiting' }];
const variables = [
  { name: 'city', type: 'string' as const, defaultValue: 'Oslo' },
  { name: 'name', type: 'string' as const, defaultValue: null },
];
const forms = {
  bare: { subject: 'Hello' },
  content: { subject: 'Hello', content },
  whole: {
    subject: 'Hello',
    description: 'To all',
    content,
    variables,
    fromEmail: 'team@example.org',
    status: 'published' as const,
  },
};

export function arrangeLetters(
  stage: Pick<Stage, 'templates' | 'emulator'>,
  letters: readonly Letter[],
): void {
  for (const [at, { crm, platform }] of letters.entries()) {
    const name = `letter-${at}`;
    const form = forms[crm === 'absent' ? 'bare' : crm];
    if (crm !== 'absent') stage.templates.push({ key: name, name, ...form });
    const { template } = stage.emulator.seed;
    if (platform !== 'absent') template({ name, ...form, ...(platform === 'differs' && other) });
    if (platform === 'twice') template({ name, ...form });
  }
}

const other = { subject: 'Somebody wrote this on the platform' };

/** Templates the source states that the platform does not show so, by key. */
export function unlikeLetters(stage: Stage): string[] {
  const shown = stage.emulator.world.templates();
  const unlike = stage.templates.filter(({ key: _, ...fields }) => {
    const same = shown.filter(({ name }) => name === fields['name']);
    const [only] = same;
    return (
      same.length !== 1 ||
      Object.entries(fields).some(
        ([field, value]) => canonicalJson(Reflect.get(only ?? {}, field)) !== canonicalJson(value),
      )
    );
  });
  return unlike.map(({ key }) => String(key));
}
