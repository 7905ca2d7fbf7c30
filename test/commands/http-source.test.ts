/** A CRM behind HTTP, mirrored by the command line: from the first load to somebody who left. */
import { describe, expect, test } from 'vitest';
import { serve } from '../support/http/test-server.ts';
import { calling, mirrored } from '../support/commands/mirrored-contacts.ts';

const TOKEN = 'sk_crm_secret';

interface Person {
  id: number;
  contact: { email: string };
  consents: { news: unknown };
  archived?: boolean;
  updatedAt?: number;
}
const person = (id: number, name: string, news: unknown): Person => {
  return { id, contact: { email: `${name}@example.com` }, consents: { news } };
};

/** A CRM of two people a page; what it holds and what it says can be changed at any time. */
async function serveCrm(people: Person[]) {
  const crm = {
    people,
    total: undefined as number | undefined,
    gone: false,
    failsAt: 0,
    forgetful: false,
    asked: [] as string[],
  };
  const url = await serve(({ url: path = '', headers }, response) => {
    const asked = new URL(path, 'http://crm');
    const answer = (body: unknown, status = 200) =>
      response.writeHead(status).end(JSON.stringify(body));
    crm.asked.push(asked.pathname);
    if (headers.authorization !== `Bearer ${TOKEN}`) return answer({}, 401);
    const id = /^\/people\/(.+)$/.exec(asked.pathname)?.[1];
    if (id !== undefined) {
      const found = crm.gone ? undefined : crm.people.find((one) => String(one.id) === id);
      return answer(found ?? {}, found ? 200 : 404);
    }
    const page = Number(asked.searchParams.get('page'));
    if (asked.pathname === '/changed') {
      if (crm.forgetful) return answer({}, 410);
      const since = Number(asked.searchParams.get('since'));
      const found = crm.people.filter(({ updatedAt = 0 }) => updatedAt > since);
      return answer({ items: found.slice(page * 2 - 2, page * 2), total: found.length });
    }
    if (page === crm.failsAt) return answer({ error: 'ann@example.com' }, 400);
    const items = crm.people.slice(page * 2 - 2, page * 2);
    return answer({ items, total: crm.total ?? crm.people.length });
  });
  return { crm, url: `${url}/people` };
}

async function mirroredCrm(people: Person[], extra: object = {}, tells = false) {
  const { crm, url } = await serveCrm(people);
  const lines = {
    contacts: {
      source: {
        type: 'http',
        url,
        headers: { Authorization: 'Bearer ${CRM_TOKEN}' },
        records: 'items',
        total: 'total',
        page: { number: 'page' },
        one: `${url}/{id}`,
        ...(tells && { changes: { url: `${url}/../changed?since={since}`, format: 'unixMs' } }),
      },
      email: 'contact.email',
      channels: [{ id: 'ch_news', subscription: 'consents.news' }],
      ...extra,
    },
    policy: { deletes: 'owned' },
  };
  const { file, ...world } = await mirrored({ lines });
  const call = async (argv: string[], token = TOKEN) => {
    const called = await calling([...argv, '-c', file], { env: { CRM_TOKEN: token } });
    const said = called.said.replaceAll(new URL(url).host, 'crm');
    expect(said).not.toMatch(/sk_crm|@example/);
    return { code: called.code, said };
  };
  return { crm, world, call, file };
}

const three = () => [person(1, 'ann', true), person(2, 'bob', 'yes'), person(3, 'cid', null)];

describe('a CRM behind HTTP', () => {
  test('is mirrored, repeatedly', async () => {
    const { crm, world, call } = await mirroredCrm(three());
    const checked = await call(['check']);
    expect(checked.said).toContain(
      '3 records, 0 of them invalid, and one of them was read by its id',
    );
    expect(checked.code).toBe(0);
    expect((await call(['sync'])).code).toBe(0);
    expect(world.shown('ann@example.com')).toMatchObject({ ch_news: 'opt_in' });
    expect(world.shown('bob@example.com')).toMatchObject({ ch_news: 'opt_in' });
    expect(world.shown('cid@example.com')).toBeUndefined();
    expect(world.writes()).toHaveLength(2);

    expect((await call(['sync'])).code).toBe(0);
    expect(world.writes()).toEqual([]);

    crm.people[1] = person(2, 'bob', false);
    expect((await call(['sync'])).code).toBe(0);
    expect(world.shown('bob@example.com')).toMatchObject({ ch_news: 'opt_out' });
  });

  test('is asked by fast runs for changes alone, until its cursor has expired', async () => {
    const { crm, world, call } = await mirroredCrm(three(), {}, true);
    expect((await call(['sync'])).code).toBe(0);
    const fast = async () => {
      crm.asked.length = 0;
      world.writes();
      const { code } = await call(['sync', '--fast']);
      return { code, asked: [...crm.asked], writes: world.writes().length };
    };
    const page = '/changed';
    expect(await fast()).toEqual({ code: 0, asked: [page], writes: 0 });

    const updatedAt = Date.now();
    crm.people[1] = { ...person(2, 'bob', false), updatedAt };
    crm.people.push({ ...person(4, 'dan', true), updatedAt });
    expect(await fast()).toEqual({ code: 0, asked: [page, page], writes: 2 });
    expect(world.shown('bob@example.com')).toMatchObject({ ch_news: 'opt_out' });
    expect(world.shown('dan@example.com')).toMatchObject({ ch_news: 'opt_in' });

    crm.forgetful = true;
    const list = '/people';
    expect(await fast()).toEqual({ code: 0, asked: [page, list, list, list], writes: 0 });
  });

  test('without the record under its single-record URL does not pass the check', async () => {
    const { crm, call } = await mirroredCrm(three());
    crm.gone = true;
    const { code, said } = await call(['check']);
    expect(code).toBe(2);
    expect(said).toContain(
      'a record of the list is not found by its id → correct one of the source',
    );
  });
});
