/** From a template file to what it wants: the lint. */
import { describe, expect, test } from 'vitest';
import { desireTemplate, refuseSharedNames } from '../../src/records/template/template-state.ts';
import { file, WELCOME } from '../support/records/template-letter.ts';

const stated = (fields: Record<string, unknown>): unknown => JSON.parse(file(fields).body);
const variable = (name: string) => ({ name, type: 'string', defaultValue: null });
const bounds = { name: 255, subject: 500, fromEmail: 255, replyTo: 255 };

describe('the lint', () => {
  test.each(Object.entries(bounds))('%s allows at most %i characters', (field, most) => {
    expect(file({ [field]: 'x'.repeat(most) }).invalid).toBeUndefined();
    const row = file({ [field]: 'x'.repeat(most + 1) });
    expect(row.invalid?.reason).toContain(field);
    expect(row).toMatchObject({ key: WELCOME, wants: true });
  });
  test.each(['draft', 'published', 'archived'])('the status %s is known', (status) => {
    expect(file({ status }).invalid).toBeUndefined();
  });
  test.each([
    [{ status: 'live' }, 'status'],
    [{ status: 'Draft' }, 'status'],
    [{ name: '' }, 'name'],
    [{ content: 'text' }, 'content'],
    [{ content: { blocks: [] } }, 'content'],
    [{ subject: null }, 'subject'],
    [{ variables: [{ name: 'a', type: 'date', defaultValue: null }] }, 'variables'],
    [{ variables: [{ name: 'a', type: 'string' }] }, 'variables'],
    [{ colour: 'red' }, 'colour'],
    [{ id: 'tpl_1' }, 'id'],
  ])('%j is refused for its %s', (fields, named) => {
    const { invalid } = file(fields);
    expect(invalid?.reason).toContain(named);
    expect(invalid?.fix).not.toBe('');
  });
  test.each([
    { content: ['Hi {{name}}'] },
    { content: [{ text: ['Hi {{{ name }}}'] }] },
    { subject: 'Hi {{ name }}' },
    { previewText: '{{name}}' },
  ])('a used variable that is not declared is refused: %j', (fields) => {
    const { invalid } = file({ ...fields, variables: [variable('other')] });
    expect(invalid?.reason).toContain('{{name}}');
    expect(file({ ...fields, variables: [variable('name')] }).invalid).toBeUndefined();
  });
  test('a declared variable may be unused', () => {
    expect(file({ content: [], variables: [variable('name')] }).invalid).toBeUndefined();
  });
});

test('files with one name are refused, each for the others', () => {
  const row = (key: string, name: string) => desireTemplate({ key, name }, `${key}.yaml`);
  const rows = [row('a', 'Twin'), row('b', 'Other'), row('c', 'Twin'), row('d', 'a')];
  const reasons = refuseSharedNames(rows).map(({ invalid }) => invalid?.reason);
  expect(reasons).toEqual([
    'has the name of c.yaml',
    undefined,
    'has the name of a.yaml',
    undefined,
  ]);
});

describe('the desired template', () => {
  test('has its name for a key unless the file states one', () => {
    expect(stated({})).toEqual({ name: WELCOME });
    expect(file({ name: 'Hello!' })).toMatchObject({ key: WELCOME, alias: 'Hello!' });
  });
  test('has an empty text where one is stated, and nothing where the field is absent', () => {
    expect(stated({ subject: '' })).toEqual({ name: WELCOME, subject: '' });
  });
  test('does not depend on the order of fields, only on values', () => {
    const print = file({ subject: 'a', description: 'b' }).fingerprint;
    expect(file({ description: 'b', subject: 'a' }).fingerprint).toBe(print);
    expect(file({ description: 'b', subject: 'c' }).fingerprint).not.toBe(print);
  });
  test.each([undefined, '', 7])('without a key (%j) belongs to nobody', (key) => {
    expect(file({ key })).toMatchObject({ key: undefined, invalid: { reason: 'has no key' } });
  });
});
