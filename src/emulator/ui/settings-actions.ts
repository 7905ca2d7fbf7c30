import { Invalid } from '../../domain/errors.ts';
import type { TemplateUpdateBody } from '../../platform/request-schemas.ts';
import type { Channel, DomainRow, KeyRow, TemplateRow } from '../shared/row-types.ts';
import type { NewKey } from '../store/api-keys.ts';
import type { Organization } from '../store/organization.ts';
import {
  type DomainView,
  type KeyView,
  type TemplateView,
  viewDomain,
  viewKey,
  viewTemplate,
} from '../api/answer-views.ts';

/**
 * What colleagues do to templates, channels, domains and keys, which are named by id (a domain also
 * by its name); and how the check of a domain ends.
 */
export interface Settings {
  editTemplate(id: string, fields: TemplateUpdateBody): TemplateView;
  /** Returns the template as it was last; no operation finds it any more. */
  deleteTemplate(id: string): TemplateView;
  createChannel(channel: Channel): Channel;
  /**
   * Ends the check of the DNS records: `active` makes the domain verified, any other status does
   * not.
   */
  settleDomain(domain: string, end: { status: string; reason?: string | undefined }): DomainView;
  /** Returns the domain as it was last. */
  deleteDomain(domain: string): DomainView;
  createKey(key: Pick<NewKey, 'name' | 'permissions'>): KeyWithSecret;
  enableKey(id: string): KeyWithSecret;
  disableKey(id: string): KeyWithSecret;
  /** Revokes a key for good. */
  revokeKey(id: string): KeyWithSecret;
  /** Draws a new secret; the old one is unknown at once. */
  rotateKey(id: string): KeyWithSecret;
}

/** A key with its secret, for people who play with the emulator. */
export interface KeyWithSecret extends KeyView {
  /** The value for x-api-key. */
  key: string;
  revoked: boolean;
}

/** Creates the acts of colleagues for an organization. */
export function settingsOf(organization: Organization): Settings {
  const { keys, now } = organization;

  function changeKey(id: string, fields: { enabled?: boolean; revoked?: boolean }): KeyWithSecret {
    const key = findKey(organization, id);
    keys.change(key, fields, now());
    return showKey(key);
  }

  return {
    ...contentOf(organization),
    createKey: (key) => showKey(keys.add(key, now())),
    enableKey: (id) => changeKey(id, { enabled: true }),
    disableKey: (id) => changeKey(id, { enabled: false }),
    revokeKey: (id) => changeKey(id, { revoked: true }),
    rotateKey(id) {
      const key = findKey(organization, id);
      keys.rotate(key, now());
      return showKey(key);
    },
  };
}

/** Returns a key with its secret. */
export function showKey(key: KeyRow): KeyWithSecret {
  return { ...viewKey(key), key: key.secret, revoked: key.revoked };
}

type Content = Pick<
  Settings,
  'editTemplate' | 'deleteTemplate' | 'createChannel' | 'settleDomain' | 'deleteDomain'
>;

function contentOf(organization: Organization): Content {
  const { templates, domains, now } = organization;
  return {
    editTemplate(id, fields) {
      const template = findTemplate(organization, id);
      templates.change(template, fields, now());
      return viewTemplate(organization, template);
    },
    deleteTemplate(id) {
      const template = findTemplate(organization, id);
      templates.remove(template);
      return viewTemplate(organization, template);
    },
    createChannel(channel) {
      const { id } = channel;
      if (organization.channels.has(id)) {
        throw new Invalid(`channel "${id}" exists already: choose another id`);
      }
      organization.addChannel({ ...channel });
      return channel;
    },
    settleDomain(who, { status, reason = '' }) {
      const domain = findDomain(organization, who);
      const verified = status === 'active';
      domains.change(
        domain,
        {
          status,
          userVerifiedDomain: verified,
          systemVerified: verified,
          verificationFailedReason: reason,
        },
        now(),
      );
      return viewDomain(domain);
    },
    deleteDomain(who) {
      const domain = findDomain(organization, who);
      domains.remove(domain);
      return viewDomain(domain);
    },
  };
}

function findTemplate({ templates }: Organization, id: string): TemplateRow {
  const template = templates.byId(id);
  if (template !== undefined) return template;
  throw new Invalid(`no template "${id}": use the id of one`);
}

function findDomain({ domains }: Organization, who: string): DomainRow {
  const domain = domains.byId(who) ?? domains.byName(who);
  if (domain !== undefined) return domain;
  throw new Invalid(`no domain "${who}": use the id or the name of one`);
}

function findKey({ keys }: Organization, id: string): KeyRow {
  const key = keys.byId(id);
  if (key !== undefined) return key;
  throw new Invalid(`no API key "${id}": use the id of one`);
}
