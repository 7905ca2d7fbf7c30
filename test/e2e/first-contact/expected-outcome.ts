/** The form of expected.json: what should come of an export, in numbers and by person. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const wish = z.enum(['in', 'out', 'none']);
const channels = <T extends z.ZodType>(value: T) => z.record(z.string().startsWith('ch_'), value);
/** Somebody of whom a guess would make something else, and which guess. */
const guessed = z.array(z.strictObject({ address: z.string(), guess: z.string() })).min(2);
const word = z.array(z.string()).optional();

const shared = {
  about: z.string(),
  /** What a user gives to `init` besides FILE, --yes and --output: at most three options. */
  flags: z
    .array(z.string())
    .max(6)
    .refine((flags) => flags.every((flag, at) => flag.startsWith('--') === (at % 2 === 0))),
  /** Columns that look like flags, and of which the user says that they are no opt-outs. */
  unused: z.array(z.string()).default([]),
  mustNotBeSubscribed: guessed,
};

/** The columns that `init` should choose; null: it should name none. */
const columns = z.strictObject({
  id: z.string(),
  email: z.string(),
  unsubscribed: z.string().nullable(),
  deleted: z.string().nullable(),
  channels: channels(z.string()),
});

/** The words beyond the built-in ones that the configuration has to know, by column. */
const words = z.record(
  z.string(),
  z.strictObject({ in: word, out: word, none: word, yes: word, no: word }),
);

const mirrored = z.strictObject({
  ...shared,
  columns,
  words,
  /** Distinct valid addresses with a row that is not flagged as deleted. */
  people: z.number(),
  /** Distinct addresses with a valid row, deleted or not: `contacts.desired` of `plan --json`. */
  desired: z.number(),
  /** On an empty platform. create: people in some channel; opt_in: their further channels. */
  plan: z.strictObject({ create: z.number(), opt_in: z.number(), opt_out: z.literal(0) }),
  /** Those of `people` who are out of every configured channel. */
  optedOut: z.number(),
  skipped: z.strictObject({ count: z.number(), lines: z.array(z.number()) }),
  invalid: z.array(z.strictObject({ line: z.number(), why: z.string() })),
  samples: z
    .array(z.strictObject({ address: z.string(), channels: channels(wish), why: z.string() }))
    .length(10),
  mustNotBeUnsubscribed: guessed,
});

const refused = z.strictObject({
  ...shared,
  refusal: z.strictObject({
    exit: z.literal(2),
    mustName: z.strictObject({ column: z.string(), words: z.record(z.string(), z.number()) }),
    /** Values of one person only, which a pipe or a log file must not show. */
    mustNotShow: z.array(z.string()),
  }),
});

type Expected = z.infer<typeof mirrored>;

/** Reads the expectations for an export that can be mirrored. Throws if a field is missing. */
export function expectedOf(name: string): Expected {
  return mirrored.parse(jsonOf(name));
}

/** Reads the expectations for an export that `init` has to refuse. */
export function refusalOf(name: string): z.infer<typeof refused> {
  return refused.parse(jsonOf(name));
}

function jsonOf(name: string): unknown {
  return JSON.parse(readFileSync(join(import.meta.dirname, name, 'expected.json'), 'utf8'));
}
