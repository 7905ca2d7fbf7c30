/** Recognizes the columns of an export by their names and by what they hold. */
import { counted, withCommas } from '../../domain/values/counted.ts';
import { listed, quoted } from '../../sources/shared/field-suggestions.ts';
import { type Column, type Sample, Undecided } from './sample/sample.ts';

interface Found {
  column: Column;
  why: string;
}

/** Returns the column of email addresses. Throws Undecided if there is none, or more than one. */
export function chooseEmail({ columns, records }: Sample): Found {
  const found = columns
    .filter(({ addresses, filled }) => addresses * 2 > filled && addresses * 4 > records)
    .toSorted((a, b) => b.addresses - a.addresses);
  const [first] = found;
  if (!first) {
    const names = listed(columns.map(({ name }) => name));
    throw new Undecided('no column holds an email address in most of its records', {
      fix: `name it: --email COLUMN; columns found: ${names}`,
      question: { about: 'email', among: [] },
      answer: { email: 'COLUMN', states: 'COLUMN is the address' },
    });
  }
  const rivals = found.filter(({ addresses }) => addresses * 10 > first.addresses * 9);
  const byName = rivals.filter(({ name }) => /mail|adress/i.test(name));
  const [chosen, second] = byName.length > 0 ? byName : rivals;
  if (!chosen || second) {
    const names = rivals.map(({ name }) => name);
    throw new Undecided(`the columns ${names.map(quoted).join(', ')} hold email addresses`, {
      fix: 'name one: --email COLUMN',
      question: { about: 'email', among: names },
      answer: { email: 'COLUMN', states: 'COLUMN is the address' },
    });
  }
  return {
    column: chosen,
    why: `an address in ${withCommas(chosen.addresses)} of ${counted(records, 'record')}`,
  };
}

/** Names of ids, the surest first. */
const idNames = [
  /^(id|uuid|guid|record id|contact id|customer id)$/i,
  /(^|[^a-z])id$|[a-z]Id$|_id$/,
  /(nr|no|nummer|number|num|key)\.?$/i,
];
const otherNumbers = /tel|phone|fax|mobil|plz|zip|post|haus/i;

/**
 * Returns the column of ids, or that of the addresses if each of them is there once. Throws
 * Undecided if neither will do.
 */
export function chooseId({ columns, records }: Sample, email: Column): Found {
  const able = columns.filter(({ name, filled, values, addresses, isList }) => {
    const isUnique = values.length * 10 >= filled * 9;
    const isMostlyFilled = filled * 5 >= records * 4;
    return isUnique && isMostlyFilled && addresses === 0 && !isList && !otherNumbers.test(name);
  });
  for (const form of idNames) {
    const [first] = able
      .filter(({ name }) => form.test(name))
      .toSorted((a, b) => b.values.length - a.values.length);
    if (!first) continue;
    const why = `named like an id; ${withCommas(first.values.length)} different in ${counted(records, 'record')}`;
    return { column: first, why };
  }
  if (email.filled > 0 && email.values.length === email.filled) {
    const why = 'no column is an id, and no address is there twice';
    return { column: email, why: `${why}; ${addressAsId}` };
  }
  const names = listed(columns.map(({ name }) => name));
  throw new Undecided('no column is recognized as the stable id of a record', {
    fix: `name it: --id COLUMN (the address, if there is no other); columns found: ${names}`,
    question: { about: 'id', among: able.map(({ name }) => name) },
    answer: { id: 'COLUMN', states: 'COLUMN is the stable id of a record' },
  });
}

export const addressAsId = 'a changed address then counts as one person gone and a new one';

/**
 * Fewer languages than `namedLike` knows, because people are opted out by a column that is proposed
 * from these names. A column that only `namedLike` knows is asked about or listed.
 */
const deletedNames =
  /delet|gel(ö|oe)scht|archived|archiviert|supprim|elimin|anulad|borrad|cancellat/i;
/** Columns about other ways to reach a person, or about why a person opted out. */
const aboutOtherMail = /sms|fax|phone|telefon|whatsapp|reason|grund|campaign|comment|source/i;

/** Returns the columns that are named like a deletion flag; columns without values are not. */
export function deletionColumns(columns: readonly Column[]): Column[] {
  return columns.filter(
    ({ name, filled }) => filled > 0 && deletedNames.test(name) && !aboutOtherMail.test(name),
  );
}
