/**
 * Reads a world from a YAML or JSON file, which holds either the records of one organization or a
 * list of organizations. Every mistake is reported with its position before any record is created.
 */
import { isNode, LineCounter, parseDocument, type Document } from 'yaml';
import { z } from 'zod';
import type { Fault } from '../../domain/record.ts';
import { fault, fixOf, says } from '../../domain/schema-fault.ts';
import { Invalid } from '../../domain/errors.ts';
import {
  contactStatus,
  domainCreateBody,
  email,
  subscription,
  templateUpdateBody,
} from '../../platform/request-schemas.ts';

const id = z
  .string()
  .regex(/^[\w.~-]{1,255}$/, says('is no id', 'use letters, digits and . _ ~ - only'));
const time = z.iso
  .datetime({ offset: true, ...says('is no time', 'write it as 2026-11-20T12:00:00Z') })
  .transform((text) => Date.parse(text));
const name = z.string().min(1);
const named = z.strictObject({ id, name });

const key = z.strictObject({
  id: id.optional(),
  /** The value for the x-api-key header. */
  key: id.optional(),
  name: name.optional(),
  permissions: z.string().optional(),
  enabled: z.boolean().optional(),
  revoked: z.boolean().optional(),
});

const user = z.strictObject({
  id: id.optional(),
  name,
  email: name,
  /** The value of the session cookie. */
  session: id.optional(),
});

const person = z.strictObject({
  id: id.optional(),
  email,
  firstName: z.string().optional(),
  lastName: z.string().optional(),
  status: contactStatus.optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  groups: z.array(named).optional(),
  channels: z.record(z.string(), subscription).optional(),
  suppressionReason: z.string().optional(),
  createdAt: time.optional(),
});

const template = z.strictObject({
  ...templateUpdateBody.shape,
  name: templateUpdateBody.shape.name.unwrap(),
  id: id.optional(),
  createdAt: time.optional(),
});

const domain = z.strictObject({
  ...domainCreateBody.shape,
  id: id.optional(),
  status: z.string().optional(),
  createdAt: time.optional(),
});

const records = {
  /** `subscription` is the assumed subscription of a contact that has none of its own. */
  channels: z.array(named.extend({ subscription: subscription.optional() })).optional(),
  keys: z.array(key).optional(),
  users: z.array(user).optional(),
  people: z.array(person).optional(),
  templates: z.array(template).optional(),
  domains: z.array(domain).optional(),
};

const organization = z.strictObject({ id: id.optional(), name: name.optional(), ...records });
/** One organization in a seed file. */
export type SeedOrganization = z.infer<typeof organization>;

const several = z.strictObject({
  organizations: z.array(organization).min(1, says('is empty', 'add an organization')),
  /** Users who are not members of any organization. */
  guests: z.array(user).optional(),
});

/** A parsed seed file. */
export interface SeedFile {
  /** Contains at least one organization. The printed key belongs to the first. */
  organizations: SeedOrganization[];
  guests: z.infer<typeof user>[] | undefined;
  /** Returns the position of a record as `file:line:col path`, for a path such as ['people', 3]. */
  where(organization: number | undefined, path: Path): string;
}

/**
 * Parses a seed file. Throws Invalid with every mistake, one line each: `file:line:col path wrong →
 * fix`.
 */
export function parseSeedFile(file: string, text: string): SeedFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken) {
    const { line, col } = lines.linePos(broken.pos[0]);
    throw new Invalid(`${file}:${line}:${col}  ${broken.message}`, {
      fix: 'mend the YAML or JSON there',
    });
  }
  const where = (path: Path) => {
    const { line, col } = lines.linePos(offsetOf(document, path));
    return `${file}:${line}:${col}  ${spell(path)}`;
  };
  const value: unknown = document.toJS() ?? {};
  if (typeof value === 'object' && value !== null && 'organizations' in value) {
    const path = (index: number | undefined) =>
      index === undefined ? [] : ['organizations', index];
    const seen = check(several, value, where);
    return {
      guests: seen.guests,
      ...seen,
      where: (index, inner) => where([...path(index), ...inner]),
    };
  }
  const only = check(organization, value, where);
  return { organizations: [only], guests: undefined, where: (_, path) => where(path) };
}

function check<T>(schema: z.ZodType<T>, value: unknown, where: (path: Path) => string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.flatMap(explain);
  throw new Invalid(
    mistakes.map(({ path, reason, fix }) => ({
      code: 'invalid',
      reason: `${where(path)}  ${reason}`,
      fix,
    })),
  );
}

/** The path to a value in the file. */
export type Path = readonly PropertyKey[];

function explain(issue: z.core.$ZodIssue): (Fault & { path: Path })[] {
  const { path } = issue;
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((wrong) => ({
      path: [...path, wrong],
      ...fault('is not known here', 'remove it, or mend its name'),
    }));
  }
  const fix = fixOf(issue) ?? mends[issue.code] ?? 'correct it';
  return [{ path, reason: issue.message, fix }];
}

const mends: Partial<Record<z.core.$ZodIssue['code'], string>> = {
  invalid_type: 'write a value of that type',
  invalid_value: 'use one of these',
  too_small: 'write something longer, or leave it out',
  too_big: 'shorten it',
};

/** Returns the offset of a value, or for a missing value the offset where it belongs. */
function offsetOf(document: Document, path: Path): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}

function spell(path: Path): string {
  if (path.length === 0) return '(the file)';
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return steps.join('').replace(/^\./, '');
}
