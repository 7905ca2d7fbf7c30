/** What people, colleagues and other programs do, on either side of a mirror. */
import fc from 'fast-check';

/** What somebody does in the CRM about a person. */
const crmActs = [
  'wants the newsletter',
  'forbids the newsletter',
  'says nothing of the newsletter',
  'says maybe to the newsletter',
  'wants the product mail',
  'forbids the product mail',
  'wants no mail at all',
  'wants mail again',
  'states a new will',
  'is flagged as deleted',
  'is flagged no longer',
  'is spelt otherwise',
  'is new',
  'is removed',
  'is doubled',
  'has a double that forbids the newsletter',
  'loses its double',
  'leaves its double behind',
  'moves to a new address',
  'moves to the address of the next one',
  'has a broken address',
  'gets the id of the next one',
] as const;

/** What a person, or a colleague, does on the platform. */
const platformActs = [
  'leaves the newsletter',
  'leaves the product mail',
  'unsubscribes from everything',
  'is blocked',
  'bounces',
  'comes back to all mail',
  'signs up for the newsletter',
  'signs up for the product mail in capitals',
  'is deleted',
  'is made twice',
  'is taken out of the newsletter',
  'is given another address',
  'is given another name',
] as const;

/** What another program does through the platform's API. */
const programActs = ['opts in to the newsletter', 'opts out of the newsletter'] as const;

/** What colleagues do to a template, on the platform or in the source. */
const templateActs = [
  'is edited on the platform',
  'is renamed on the platform',
  'is doubled on the platform',
  'is deleted on the platform',
  'changes in the source',
  'is removed from the source',
  'is new in the source',
  'gets another name in the source',
] as const;

export const who = fc.nat({ max: 7 });
export const act = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ in: fc.constant('crm'), who, does: fc.constantFrom(...crmActs) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      in: fc.constant('platform'),
      who,
      does: fc.constantFrom(...platformActs),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      in: fc.constant('program'),
      who,
      does: fc.constantFrom(...programActs),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      in: fc.constant('templates'),
      who,
      does: fc.constantFrom(...templateActs),
    }),
  },
);
export type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;

/** Every act there is, as `where: what`. */
export const allActs = [
  ...crmActs.map((does) => `crm: ${does}`),
  ...platformActs.map((does) => `platform: ${does}`),
  ...programActs.map((does) => `program: ${does}`),
  ...templateActs.map((does) => `templates: ${does}`),
];
