/** What the name of a column says, in a dozen languages. */
import { expect, test } from 'vitest';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import {
  isAboutOptOut,
  isNamedLikeOptOut,
  isOptOutField,
  namedLike,
  isOtherName,
} from '../../src/domain/opt-out-names.ts';

test.each([
  ['English', ['Do not mail', 'DoNotContact', 'do_not_email', 'Email Opt Out', 'UNSUB_TIME']],
  [
    'English',
    ['HasOptedOutOfEmail', 'Unsubscribed at', 'optedout', 'No emails', 'properties.optout'],
  ],
  ['English', ['Opt-in revoked', 'Opt-in (double) revoked?', 'optInCancelled', 'Consent void']],
  ['English', ['Subscription ended', 'Newsletter ended', 'Newsletter terminated', 'Mailings off']],
  ['English', ['Subscription stopped', 'Cancelled subscription', 'Consent_ended__c']],
  ['German', ['Einwilligung beendet', 'Abo gekündigt', 'Newsletter storniert']],
  ['Dutch', ['Abonnement opgezegd', 'Nieuwsbrief beëindigd', 'Toestemming gestopt']],
  ['Danish and Norwegian', ['Nyhedsbrev opsagt', 'Abonnement avsluttet', 'Samtykke ophørt']],
  ['French', ['Abonnement résilié', 'Inscription annulée', 'Consentement terminé']],
  ['Spanish and Portuguese', ['Suscripción finalizada', 'Assinatura encerrada']],
  ['Italian and Romanian', ['Iscrizione terminata', 'Abbonamento disdetto', 'Abonament reziliat']],
  ['Polish and Czech', ['Zgoda zakończona', 'Subskrypcja anulowana', 'Souhlas ukončen']],
  ['Hungarian and Finnish', ['Feliratkozás megszűnt', 'Tilaus päättynyt']],
  ['Turkish and Russian', ['Abonelik sona erdi', 'Подписка прекращена']],
  ['German', ['Abgemeldet am', 'Abmeldedatum', 'Widerruf', 'Keine Werbung', 'Newsletter gesperrt']],
  ['German', ['Nicht mehr anschreiben', 'Werbesperre', 'Abbestellt', 'Keine E-Mails']],
  ['Dutch', ['Uitgeschreven op', 'Niet mailen', 'Afgemeld', 'Geen nieuwsbrief']],
  ['French', ['Ne pas contacter', 'Désinscrit le', 'Désabonné', 'Pas de mail', 'Refus email']],
  ['Spanish', ['No contactar', 'Fecha de baja', 'Desuscrito', 'No enviar correo']],
  ['Spanish', ['Inscrito en Robinson']],
  ['Portuguese', ['Não contactar', 'Descadastrado em', 'Cancelou a inscrição', 'Não enviar']],
  ['Italian', ['Disiscritto il', 'Non contattare', 'Non inviare email']],
  ['Polish', ['Wypisany', 'Rezygnacja', 'Nie wysyłać']],
  ['Swedish', ['Avregistrerad', 'Ej utskick', 'Avanmäld']],
  ['Danish', ['Afmeldt', 'Ikke kontakt', 'Frameldt']],
  ['Finnish', ['Markkinointikielto', 'Ei sähköpostia']],
  ['Czech', ['Odhlášen', 'Nezasílat']],
  ['Russian', ['Отписан', 'Не беспокоить']],
  ['Japanese', ['配信停止', '購読していない']],
  ['English', ['No longer subscribed', 'no longer opted in', 'Former subscriber', 'Left the list']],
  ['German', ['Nicht mehr abonniert', 'nicht mehr angemeldet', 'Kein Abonnent mehr', 'Kein NL']],
  ['Dutch', ['Niet meer geabonneerd', 'niet meer ingeschreven', 'Geen abonnee meer']],
  ['Danish and Norwegian', ['Ikke længere tilmeldt', 'Ikke lenger påmeldt', 'Ikke abonnent']],
  ['Swedish', ['Inte längre prenumerant', 'Prenumererar inte', 'Tackat nej till utskick']],
  ['French', ['Plus abonné', 'n’est plus abonnée', 'n’est plus inscrit', 'Non abonné']],
  ['Spanish', ['Ya no suscrito', 'ya no está suscrita', 'No suscrito']],
  ['Portuguese', ['Não está mais inscrito', 'Já não inscrito', 'Não assinante']],
  ['Italian', ['Non più iscritto', 'non è più iscritta', 'Non abbonato']],
  ['Romanian', ['Nu mai este abonat', 'Nu abonat', 'Nu dorește emailuri']],
  ['Polish', ['Już nie subskrybuje', 'nie jest już zapisany']],
  ['Czech and Slovak', ['Není přihlášen', 'Již neodebírá', 'Nie je prihlásený']],
  ['Hungarian', ['Már nem feliratkozott']],
  ['Finnish', ['Ei enää tilaaja']],
  ['Turkish', ['Artık abone değil']],
  ['Russian and Ukrainian', ['Больше не подписан', 'Не підписаний']],
  ['Greek', ['Δεν είναι πλέον εγγεγραμμένος']],
  ['Chinese', ['不再订阅']],
  ['Korean', ['구독 안 함']],
])('%s opt-outs: %j', (_, names) => {
  for (const name of names) expect([name, namedLike(name)]).toEqual([name, 'opt-out']);
});

test.each([
  ['reason', ['UNSUB_REASON', 'Abmeldegrund', 'Unsubscribe campaign']],
  ['other', ['Opt-out SMS', 'HasOptedOutOfFax', 'Do not call or contact by phone']],
  [
    'deletion',
    ['Gearchiveerd', 'Deleted', 'Gelöscht', 'Supprimé', 'Slettet', 'Verwijderd', 'Удалено'],
  ],
])('%s: %j', (kind, names) => {
  for (const name of names) expect([name, namedLike(name)]).toEqual([name, kind]);
});

test('other names say nothing', () => {
  const names = ['Email', 'Newsletter', 'Customer No', 'Teléfono contacto', 'Contact', 'Status'];
  const more = ['Nieuwsbrief', 'Productnieuws', 'Baldur', 'Name', 'Notes', 'Non-profit', 'Kielto'];
  const consents = [
    'Subscribed',
    'Abonnent',
    'Abonné',
    'Iscritto',
    'Inscrito',
    'Subscribed longer',
  ];
  const numbers = ['Mailing No', 'Newsletter no.', 'Consent No'];
  for (const name of [...names, ...more, ...consents, ...numbers])
    expect([name, namedLike(name)]).toEqual([name, undefined]);
});

/** Names that were written before the recognition, by somebody else. */
const list = z
  .record(z.string(), z.array(z.string()))
  .parse(JSON.parse(readFileSync(new URL('opt-out-column-names.json', import.meta.url), 'utf8')));

test.each([
  ['optOut', true],
  ['bounceOrSuppression', true],
  ['consent', false],
  ['notOptOut', false],
])('of the list, all of %s: %s', (part, expected) => {
  const names = list[part] ?? [];
  expect(names.length).toBeGreaterThan(50);
  expect(names.filter((name) => isNamedLikeOptOut(name) !== expected)).toEqual([]);
});

test.each([
  'hasOptedOutOfEmail',
  'doNotBulkEmail',
  'emailOptOut',
  'keineWerbemails',
  'nePasContacter',
])('the spelling of %s does not count', (name) => {
  const words = name.replaceAll(/(?=[A-Z])/g, ' ');
  const spellings = [name, name.toLowerCase(), name.toUpperCase(), words, words.toUpperCase()];
  const more = [words.replaceAll(' ', '_'), words.replaceAll(' ', '-'), `crm.${name}__c`];
  expect([...spellings, ...more].filter((one) => !isNamedLikeOptOut(one))).toEqual([]);
});

test('a word within other words, or turned around, is no opt-out', () => {
  const within = ['Adopt outcome', 'Laptop outlet', 'Nome mail', 'Rebajas', 'Wholesale mailing'];
  const turned = ['Not opted out', 'nicht abgemeldet', 'No bounce', 'Opt-in / opt-out'];
  const both = ['Opt-out or opt-in', 'Subscription end', 'Subscription offer', 'Contract ended'];
  const sentences = ['I want news. I can unsubscribe at any time.', 'Abmeldung jederzeit möglich'];
  expect([...within, ...turned, ...both, ...sentences].filter(isNamedLikeOptOut)).toEqual([]);
});

test('a field that holds any term of opting out is no consent by built-in words', () => {
  const named = ['Data Subject Opt Out', 'Total Unsubscribed', 'Opt out link', 'Unsubscribe URL'];
  const turned = ['Not opted out', 'Opt-in / opt-out', 'Unsubscribe score', 'Not unsubscribed'];
  const others = ['Unsubscribe reason', 'Opt-out SMS', 'consent.opt_out.value'];
  const long = `${'I want to hear from you about many things. '.repeat(6)}Do not mail me.`;
  const all = [...named, ...turned, ...others, long];
  expect(all.filter((name) => !isOptOutField(name))).toEqual([]);
  const noes = ['No events', 'noEvents', 'prefs.no_tips', 'Ohne Einladungen', 'Não convites'];
  expect(noes.filter((name) => !isOptOutField(name))).toEqual([]);
  const consents = ['Data Subject', 'Total Subscribed', 'Opt in link', 'Newsletter', 'Deleted'];
  const numbers = ['No 1 news', 'Nonprofit news', 'Notes', 'no', 'News no', 'no.news'];
  expect([...consents, ...numbers].filter(isOptOutField)).toEqual([]);
});

test('a value opts out, whatever way or reason it names', () => {
  const values = [
    'opted out by phone',
    'unsubscribed by campaign 7',
    'Abgemeldet',
    'keine E-Mails',
  ];
  expect(values.filter((text) => !isAboutOptOut(text))).toEqual([]);
  expect(['deleted', 'by phone', 'not unsubscribed', 'subscribed'].filter(isAboutOptOut)).toEqual(
    [],
  );
});

test('what most exports have is known by its name', () => {
  const names = ['First name', 'firstName', 'VORNAME', 'Nome', 'Straße', 'Address 1', 'Time zone'];
  expect(names.filter((name) => !isOtherName(name))).toEqual([]);
  expect(['Status', 'KZ', 'Name of list', 'Newsletter date'].filter(isOtherName)).toEqual([]);
});
