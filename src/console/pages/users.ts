/** Lets operators add users of the console, change what they may do, and shut them out. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isExpected, renderProblem } from '../../domain/errors.ts';
import { explain } from '../../compose/output/failure-report.ts';
import { names } from '../../views/sections.ts';
import { html, type Html, sectionsHtml } from '../../views/render/html.ts';
import {
  addUser,
  changeUser,
  hashPassword,
  roles,
  type KnownUser,
  type Users,
} from '../access/users-file.ts';
import type { User } from '../access/access-rules.ts';
import { rememberDecision } from '../../compose/mirror-files.ts';
import type { Clock } from '../../domain/clock.ts';
import { type ConsoleMirror, operatorName } from '../view/console-mirror.ts';
import { postForm, textField } from '../view/form.ts';
import { csrfOf, formOf, sendPage } from '../view/layout.ts';
import { readEach } from './mirrors.ts';

/** Sends the page of the users, for an operator. */
export async function showUsers(
  request: FastifyRequest,
  reply: FastifyReply,
  users: Users,
): Promise<void> {
  const csrf = csrfOf(reply, request.visitor);
  const listed = users.list();
  const state = ({ role, disabled }: KnownUser) =>
    disabled ? ({ tone: 'quiet', text: 'may not sign in' } as const) : role;
  const rows = listed.map((one) => ({ id: one.name, cells: [one.name, state(one)], notes: [] }));
  const forms = (name: string): Html | '' => {
    const one = listed.find((user) => user.name === name);
    if (!one) return '';
    const other = one.role === 'operator' ? 'viewer' : 'operator';
    const button = (change: string, label: string): Html =>
      html`<button class="second" name="change" value="${change}">${label}</button>`;
    const buttons = html`${button(other, `Make ${other}`)} ${button('password', 'New password')}
    ${button(one.disabled ? 'enabled' : 'disabled', one.disabled ? 'Enable' : 'Disable')}`;
    return postForm(csrf, '/users', buttons, { name });
  };
  const table = { columns: [names('User'), 'Role'], rows };
  const adding = html`${textField('Name', { name: 'name', most: 64 })}
    <label
      >Role
      <select name="role">
        ${roles.map((role) => html`<option>${role}</option>`)}
      </select></label
    >
    <button name="change" value="add">Add</button>`;
  await sendPage(request, reply, {
    title: 'Users',
    csrf,
    body: html`<p><a href="/">All mirrors</a></p>
      ${sectionsHtml([{ table }], { forms })}
      <section>
        <h2>Add a user</h2>
        ${postForm(csrf, '/users', adding)}
      </section>`,
  });
}

const changed = z.object({
  name: z.string(),
  change: z.enum(['add', 'password', 'disabled', 'enabled', ...roles]),
  role: z.enum(roles).default('viewer'),
});

interface ChangingUsers {
  users: Users;
  by: User;
  random(bytes: number): Buffer;
  mirrors: readonly ConsoleMirror[];
  clock: Clock;
}

/**
 * Adds or changes a user, for an operator, and remembers that in the audit logs of the mirrors;
 * then shows the page, with a new password once.
 */
export async function changeUsers(
  request: FastifyRequest,
  reply: FastifyReply,
  { users: { path }, by, random, mirrors, clock }: ChangingUsers,
): Promise<void> {
  const { name, change, role } = formOf(request, changed);
  const isSecret = change === 'add' || change === 'password';
  const password = random(15).toString('base64url');
  const told = `${name}: the password, shown only now: ${password}`;
  try {
    const hash = isSecret ? await hashPassword(password, random(16)) : '';
    if (change === 'add') addUser(path, { name, role, password: hash });
    else if (change === 'password') changeUser(path, name, { password: hash });
    else if (change === 'disabled') changeUser(path, name, { disabled: true });
    else if (change === 'enabled') changeUser(path, name, { disabled: undefined });
    else changeUser(path, name, { role: change });
  } catch (error) {
    if (!isExpected(error)) throw error;
    const lines = [renderProblem(explain(error).problem)];
    request.session.set('flash', { kind: 'bad', sections: [{ lines }] });
    await reply.redirect('/users', 303);
    return;
  }
  const what = change === 'add' ? `added as ${role}` : words[change];
  const about = `${name.replaceAll('@', ' at ')}: ${what}`;
  const none = { reason: null, evidence: null, as: null };
  const decision = { at: clock.now(), what: 'user', name: operatorName(by), about, ...none };
  const missed = await readEach(mirrors, clock, async ({ config }) =>
    rememberDecision(config.snapshot, decision),
  );
  const lines = [isSecret ? told : `${name} is changed.`];
  if (missed.length > 0) lines.push(`Not in the audit log of ${missed.join(', ')}.`);
  const kind = missed.length === 0 ? 'good' : 'bad';
  request.session.set('flash', { kind, sections: [{ lines }] });
  await reply.redirect('/users', 303);
}

const words = {
  password: 'a new password',
  disabled: 'may not sign in',
  enabled: 'may sign in again',
  operator: 'operator',
  viewer: 'viewer',
} as const;
