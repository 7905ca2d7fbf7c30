import type { DomainCreateBody } from '../../platform/request-schemas.ts';
import type { Ids } from '../shared/seeded-random.ts';
import { createTable } from './newest-first.ts';
import type { Shelf } from './storage.ts';
import type { DomainRow, DnsRecord } from '../shared/row-types.ts';
import { createHash } from 'node:crypto';

/** A domain to add. `status` defaults to pending. */
export interface NewDomain extends DomainCreateBody {
  id?: string | undefined;
  status?: string | undefined;
  createdAt?: number | undefined;
}

export function createDomains(ids: Ids, shelf: Shelf<DomainRow>) {
  const table = createTable(shelf);
  return {
    ...table,
    add(domain: NewDomain, now: number): DomainRow {
      const id = domain.id ?? ids('dom');
      const createdAt = domain.createdAt ?? now;
      const isActive = domain.status === 'active';
      const settings = {
        domain: domain.domain.toLowerCase(),
        customReturnPath: domain.custom_return_path ?? 'inbound',
        trackingSubdomain: domain.tracking ?? 'tracking',
        isClickTrackingEnabled: domain.click_tracking ?? false,
        isOpenTrackingEnabled: domain.open_tracking ?? false,
        tls: domain.tls ?? 'opportunistic',
        isSendingEmailEnabled: domain.sending_email ?? true,
        isReceivingEmailEnabled: domain.receiving_email ?? true,
      };
      return table.insert({
        id,
        serial: table.nextSerial(),
        ...settings,
        status: domain.status ?? 'pending',
        userVerifiedDomain: isActive,
        systemVerified: isActive,
        verificationFailedReason: '',
        dnsRecords: createRecords(settings, ids),
        lastVerifiedAt: createdAt,
        createdAt,
        updatedAt: createdAt,
      });
    },
    /** Finds a domain by its name, ignoring case. */
    byName: (domain: string) =>
      [...table.rows()].find((row) => row.domain === domain.toLowerCase()),
    change: (
      row: DomainRow,
      fields: Partial<Omit<DomainRow, 'id' | 'serial' | 'domain'>>,
      now: number,
    ) => table.change(row, fields, now),
  };
}

export type Domains = ReturnType<typeof createDomains>;

interface Settings {
  domain: string;
  customReturnPath: string;
  trackingSubdomain: string;
  isSendingEmailEnabled: boolean;
  isReceivingEmailEnabled: boolean;
}

const HOST = 'mail-platform.example';

/**
 * Returns the DNS records that a domain needs, as mail platforms request them. The hosts and the
 * DKIM key are made up, because the emulator never sends mail.
 */
function createRecords(settings: Settings, ids: Ids): DnsRecord[] {
  const { domain, customReturnPath: bounces, trackingSubdomain: tracking } = settings;
  const { isSendingEmailEnabled: sends, isReceivingEmailEnabled: receives } = settings;
  const halves = ['a', 'b'].map((half) =>
    createHash('sha512').update(`${half}:${domain}`).digest('base64').replaceAll('=', ''),
  );
  const key = `MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ${halves.join('')}IDAQAB`;
  const rows: [boolean, DnsRecord['recordType'], typeName: string, name: string, value: string][] =
    [
      [receives, 'MX', 'MX', '@', `inbound.${HOST}`],
      [sends, 'TXT', 'SPF', bounces, `v=spf1 include:spf.${HOST} ~all`],
      [sends, 'TXT', 'DKIM', 'crm._domainkey', `v=DKIM1; k=rsa; p=${key}`],
      [sends, 'MX', 'Return-Path', bounces, `feedback.${HOST}`],
      [true, 'CNAME', 'Tracking', tracking, `links.${HOST}`],
    ];
  const needed = rows.filter(([isNeeded]) => isNeeded);
  return needed.map(([, recordType, recordTypeName, name, value]) => {
    const priority = recordType === 'MX' ? 10 : 0;
    return { id: ids('rec'), recordType, recordTypeName, name, value, priority };
  });
}

/** Returns made-up nameservers, which are always the same for a given domain. */
export function nameserversOf(domain: string): { nameservers: string[]; dnsProvider: string } {
  const number = createHash('sha256').update(domain).digest().readUInt8(0);
  return {
    nameservers: [`ns${number}a.dns-host.example`, `ns${number}b.dns-host.example`],
    dnsProvider: 'DNS Host Example',
  };
}
