/** What the YAML of several sources has in common. */
import { z } from 'zod';
import { durationForm, numeric, truth } from '../../domain/values/config-value.ts';

export const text = (what: string) => z.string().min(1).describe(what);

export const whole = (min: number, max: number, what: string) =>
  z.preprocess(numeric, z.number().int().min(min).max(max)).describe(what);

export const flag = (what: string) => z.preprocess(truth, z.boolean()).describe(what);

const noDuration = 'is not a duration → write a number from 1 and s, m, h or d: 2m';

/** A duration: 2m, unless it says something else. */
export const overlap = (what: string) =>
  z.string().regex(durationForm, noDuration).describe(what).default('2m');
