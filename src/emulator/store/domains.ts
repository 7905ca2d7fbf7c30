import type { DomainCreateBody } from '../../platform/request-schemas.ts';
import { recordsOf } from '../shared/dns-records.ts';
import type { Ids } from '../shared/seeded-random.ts';
import { newestFirst } from './newest-first.ts';
import type { Shelf } from './storage.ts';
import type { DomainRow } from '../shared/row-types.ts';

/** A domain to add. `status` defaults to pending. */
export interface NewDomain extends DomainCreateBody {
  id?: string | undefined;
  status?: string | undefined;
  createdAt?: number | undefined;
}

export type DomainChange = Partial<
  Pick<
    DomainRow,
    | 'status'
    | 'userVerifiedDomain'
    | 'systemVerified'
    | 'verificationFailedReason'
    | 'lastVerifiedAt'
  >
>;

export function createDomains(ids: Ids, shelf: Shelf<DomainRow>) {
  const all = newestFirst<DomainRow>();
  const byId = new Map<string, DomainRow>();
  const byName = new Map<string, DomainRow>();
  let serial = 0;

  function put(row: DomainRow): void {
    serial = Math.max(serial, row.serial);
    byId.set(row.id, row);
    byName.set(row.domain, row);
    all.add(row);
  }

  return {
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
      const row: DomainRow = {
        id,
        serial: serial + 1,
        ...settings,
        status: domain.status ?? 'pending',
        userVerifiedDomain: isActive,
        systemVerified: isActive,
        verificationFailedReason: '',
        dnsRecords: recordsOf(settings, ids),
        lastVerifiedAt: createdAt,
        createdAt,
        updatedAt: createdAt,
      };
      put(row);
      shelf.keep(row);
      return row;
    },
    put,
    remove(row: DomainRow): void {
      byId.delete(row.id);
      byName.delete(row.domain);
      all.remove(row);
      shelf.drop(row.id);
    },
    byId: (id: string) => byId.get(id),
    /** Finds a domain by its name, ignoring case. */
    byName: (domain: string) => byName.get(domain.toLowerCase()),
    change(row: DomainRow, fields: DomainChange, now: number): void {
      Object.assign(row, fields, { updatedAt: now });
      shelf.keep(row);
    },
    listed: () => all,
    rows: () => byId.values(),
    clear(): void {
      byId.clear();
      byName.clear();
      all.clear();
      serial = 0;
    },
  };
}

export type Domains = ReturnType<typeof createDomains>;
