/**
 * Generates the DNS records that a sending domain needs, as mail platforms request them. The hosts
 * and the DKIM key are made up, because the emulator never sends mail.
 */
import { createHash } from 'node:crypto';
import type { DnsRecord } from './row-types.ts';
import type { Ids } from './seeded-random.ts';

interface Settings {
  domain: string;
  customReturnPath: string;
  trackingSubdomain: string;
  isSendingEmailEnabled: boolean;
  isReceivingEmailEnabled: boolean;
}

const HOST = 'mail-platform.example';

/**
 * Returns the DNS records of a domain:
 *
 *   record       if             name                value
 *   MX           receiving      @                   the host that receives the domain's mail
 *   SPF          sending        the return path     the hosts that may send with the return path
 *   DKIM         sending        crm._domainkey      the public key of the signatures
 *   Return-Path  sending        the return path     the host that receives bounces
 *   Tracking     always         the tracking label  the host that counts links and pixels
 */
export function recordsOf(settings: Settings, ids: Ids): DnsRecord[] {
  const { domain, customReturnPath, trackingSubdomain } = settings;
  const receiving: Omit<DnsRecord, 'id'>[] = [
    { ...mx, recordTypeName: 'MX', name: '@', value: `inbound.${HOST}` },
  ];
  const sending: Omit<DnsRecord, 'id'>[] = [
    {
      ...txt,
      recordTypeName: 'SPF',
      name: customReturnPath,
      value: `v=spf1 include:spf.${HOST} ~all`,
    },
    { ...txt, recordTypeName: 'DKIM', name: 'crm._domainkey', value: dkimOf(domain) },
    {
      ...mx,
      recordTypeName: 'Return-Path',
      name: customReturnPath,
      value: `feedback.${HOST}`,
    },
  ];
  const tracking: Omit<DnsRecord, 'id'> = {
    recordType: 'CNAME',
    recordTypeName: 'Tracking',
    name: trackingSubdomain,
    value: `links.${HOST}`,
    priority: 0,
  };
  const wanted = [
    ...(settings.isReceivingEmailEnabled ? receiving : []),
    ...(settings.isSendingEmailEnabled ? sending : []),
    tracking,
  ];
  return wanted.map((record) => ({ id: ids('rec'), ...record }));
}

const mx = { recordType: 'MX', priority: 10 } as const;
const txt = { recordType: 'TXT', priority: 0 } as const;

/** Returns a text that looks like a DKIM key but is not one. */
function dkimOf(domain: string): string {
  const halves = ['a', 'b'].map((half) =>
    createHash('sha512').update(`${half}:${domain}`).digest('base64'),
  );
  return `v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ${halves.join('').replaceAll('=', '')}IDAQAB`;
}

/** Returns made-up nameservers, which are always the same for a given domain. */
export function nameserversOf(domain: string): { nameservers: string[]; dnsProvider: string } {
  const number = createHash('sha256').update(domain).digest().readUInt8(0);
  return {
    nameservers: [`ns${number}a.dns-host.example`, `ns${number}b.dns-host.example`],
    dnsProvider: 'DNS Host Example',
  };
}
