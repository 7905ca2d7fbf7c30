PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE schema_migrations (version TEXT NOT NULL PRIMARY KEY);
INSERT INTO schema_migrations VALUES('20220301120000');
INSERT INTO schema_migrations VALUES('20231105093000');
CREATE TABLE contacts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  email TEXT,
  first_name TEXT,
  opt_in INTEGER,
  opt_in_product INTEGER,
  unsubscribed_at TEXT,
  deleted_at TEXT,
  created_at TEXT NOT NULL,
  confirmed_at TEXT
);
INSERT INTO contacts VALUES(1,'adam.1@example.com','Adam',1,0,NULL,NULL,'2022-02-11 09:11:00','2022-02-11 10:00:00');
INSERT INTO contacts VALUES(2,'sina.2@example.org','Sina',1,1,NULL,NULL,'2022-03-12 09:12:00','2022-03-12 10:00:00');
INSERT INTO contacts VALUES(3,'julia.3@beispiel.example','Julia',0,NULL,NULL,NULL,'2022-04-13 09:13:00',NULL);
INSERT INTO contacts VALUES(4,'bea.4@example.com','Bea',NULL,1,NULL,NULL,'2022-05-14 09:14:00','2022-05-14 10:00:00');
INSERT INTO contacts VALUES(5,'abe@example.com','Abe',2,1,NULL,NULL,'2022-06-15 09:15:00','2022-06-15 10:00:00');
INSERT INTO contacts VALUES(6,'bess@example.com','Bess',-1,NULL,NULL,NULL,'2022-07-16 09:16:00',NULL);
INSERT INTO contacts VALUES(7,'theo.5@example.org','Theo',1,0,NULL,NULL,'2022-08-17 09:17:00','2022-08-17 10:00:00');
INSERT INTO contacts VALUES(8,'kurt.6@beispiel.example','Kurt',0,0,NULL,'2023-12-24 18:00:00','2022-09-18 09:18:00','2022-09-18 10:00:00');
INSERT INTO contacts VALUES(9,'cal@example.com','Cal','yes','no',NULL,NULL,'2022-01-19 09:19:00',NULL);
INSERT INTO contacts VALUES(10,'dee@example.com','Dee',1,1,NULL,'0000-00-00 00:00:00','2022-02-20 09:20:00','2022-02-20 10:00:00');
INSERT INTO contacts VALUES(11,'carl.7@example.com','Carl',1,1,NULL,NULL,'2022-03-21 09:21:00','2022-03-21 10:00:00');
INSERT INTO contacts VALUES(12,'uta.8@example.org','Uta',1,NULL,NULL,NULL,'2022-04-22 09:22:00',NULL);
INSERT INTO contacts VALUES(13,'eli@example.com','Eli',1,0,NULL,'','2022-05-23 09:23:00','2022-05-23 10:00:00');
INSERT INTO contacts VALUES(14,'fran@example.com','Fran',1,1,NULL,'2024-05-01 10:22:33','2022-06-24 09:24:00','2022-06-24 10:00:00');
INSERT INTO contacts VALUES(15,'lena.9@beispiel.example','Lena',0,1,'2024-03-03 12:00:00',NULL,'2022-07-25 09:25:00',NULL);
INSERT INTO contacts VALUES(16,'dora.10@example.com','Dora',NULL,0,NULL,NULL,'2022-08-26 09:26:00','2022-08-26 10:00:00');
INSERT INTO contacts VALUES(17,'gene@example.com','Gene',1,1,'2024-06-01 00:00:00',NULL,'2022-09-27 09:27:00','2022-09-27 10:00:00');
INSERT INTO contacts VALUES(18,NULL,'Hope',1,1,NULL,NULL,'2022-01-10 09:28:00',NULL);
INSERT INTO contacts VALUES(19,'viktor.11@example.org','Viktor',1,0,NULL,NULL,'2022-02-11 09:29:00','2022-02-11 10:00:00');
INSERT INTO contacts VALUES(20,'max.12@beispiel.example','Max',0,1,NULL,NULL,'2022-03-12 09:30:00','2022-03-12 10:00:00');
INSERT INTO contacts VALUES(21,'','Ivy',1,0,NULL,NULL,'2022-04-13 09:31:00',NULL);
INSERT INTO contacts VALUES(22,'   ','Jack',1,1,NULL,NULL,'2022-05-14 09:32:00','2022-05-14 10:00:00');
INSERT INTO contacts VALUES(23,'elias.13@example.com','Elias',1,NULL,NULL,NULL,'2022-06-15 09:33:00','2022-06-15 10:00:00');
INSERT INTO contacts VALUES(24,'wanda.14@example.org','Wanda',1,1,NULL,'2023-12-24 18:00:00','2022-07-16 09:34:00',NULL);
INSERT INTO contacts VALUES(25,'Kit@Example.com','Kit',1,NULL,NULL,NULL,'2022-08-17 09:35:00','2022-08-17 10:00:00');
INSERT INTO contacts VALUES(26,'kit@example.com','Kit',0,1,NULL,NULL,'2022-09-18 09:36:00','2022-09-18 10:00:00');
INSERT INTO contacts VALUES(27,'nele.15@beispiel.example','Nele',0,0,NULL,NULL,'2022-01-19 09:37:00',NULL);
INSERT INTO contacts VALUES(28,'flora.16@example.com','Flora',NULL,0,NULL,NULL,'2022-02-20 09:38:00','2022-02-20 10:00:00');
INSERT INTO contacts VALUES(29,'les@example.com','Les',1,1,NULL,'2024-07-07 07:07:07','2022-03-21 09:39:00','2022-03-21 10:00:00');
INSERT INTO contacts VALUES(30,'LES@example.com','Les',1,NULL,NULL,NULL,'2022-04-22 09:40:00',NULL);
INSERT INTO contacts VALUES(31,'xenia.17@example.org','Xenia',1,1,NULL,NULL,'2022-05-23 09:41:00','2022-05-23 10:00:00');
INSERT INTO contacts VALUES(32,'oskar.18@beispiel.example','Oskar',0,NULL,NULL,NULL,'2022-06-24 09:42:00','2022-06-24 10:00:00');
INSERT INTO contacts VALUES(33,'may@example.com.','May',1,1,NULL,NULL,'2022-07-25 09:43:00',NULL);
INSERT INTO contacts VALUES(34,'o''neil@example.com','O''Neil',1,0,NULL,NULL,'2022-08-26 09:44:00','2022-08-26 10:00:00');
INSERT INTO contacts VALUES(35,'georg.19@example.com','Georg',1,1,NULL,NULL,'2022-09-27 09:45:00','2022-09-27 10:00:00');
INSERT INTO contacts VALUES(36,'york.20@example.org','York',1,0,NULL,NULL,'2022-01-10 09:46:00',NULL);
INSERT INTO contacts VALUES(37,'ned@example.com,nell@example.com','Ned',1,1,NULL,NULL,'2022-02-11 09:47:00','2022-02-11 10:00:00');
INSERT INTO contacts VALUES(38,'ott@example.com','Ott','maybe',0,NULL,NULL,'2022-03-12 09:48:00','2022-03-12 10:00:00');
INSERT INTO contacts VALUES(39,'pia.21@beispiel.example','Pia',0,0,NULL,NULL,'2022-04-13 09:49:00',NULL);
INSERT INTO contacts VALUES(40,'helga.22@example.com','Helga',NULL,1,NULL,NULL,'2022-05-14 09:50:00','2022-05-14 10:00:00');
INSERT INTO contacts VALUES(41,'pat@example.com','Pat',NULL,NULL,NULL,NULL,'2022-06-15 09:51:00','2022-06-15 10:00:00');
INSERT INTO contacts VALUES(42,'ray@example.com','Ray',3,0,'2024-08-08 08:08:08',NULL,'2022-07-16 09:52:00',NULL);
INSERT INTO contacts VALUES(43,'zita.23@example.org','Zita',1,NULL,NULL,NULL,'2022-08-17 09:53:00','2022-08-17 10:00:00');
INSERT INTO contacts VALUES(44,'ralph.24@beispiel.example','Ralph',0,1,NULL,NULL,'2022-09-18 09:54:00','2022-09-18 10:00:00');
INSERT INTO contacts VALUES(45,'sal@example.com','Sal',0,0,NULL,'2024-09-09 09:09:09','2022-01-19 09:55:00',NULL);
INSERT INTO contacts VALUES(46,'sal@example.com','Sal',1,1,NULL,NULL,'2022-02-20 09:56:00','2022-02-20 10:00:00');
INSERT INTO contacts VALUES(47,'ivo.25@example.com','Ivo',1,0,'2024-03-03 12:00:00',NULL,'2022-03-21 09:57:00','2022-03-21 10:00:00');
INSERT INTO contacts VALUES(48,'adam.26@example.org','Adam',1,0,NULL,NULL,'2022-04-22 09:58:00',NULL);
INSERT INTO contacts VALUES(49,'sina.27@beispiel.example','Sina',0,1,NULL,NULL,'2022-05-23 09:10:00','2022-05-23 10:00:00');
INSERT INTO contacts VALUES(50,'julia.28@example.com','Julia',NULL,NULL,NULL,'2023-12-24 18:00:00','2022-06-24 09:11:00','2022-06-24 10:00:00');
INSERT INTO contacts VALUES(51,'bea.29@example.org','Bea',1,1,NULL,NULL,'2022-07-25 09:12:00',NULL);
INSERT INTO contacts VALUES(52,'theo.30@beispiel.example','Theo',0,0,NULL,NULL,'2022-08-26 09:13:00','2022-08-26 10:00:00');
INSERT INTO contacts VALUES(53,'kurt.31@example.com','Kurt',1,0,NULL,NULL,'2022-09-27 09:14:00','2022-09-27 10:00:00');
INSERT INTO contacts VALUES(54,'carl.32@example.org','Carl',1,1,NULL,NULL,'2022-01-10 09:15:00',NULL);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('contacts',54);
CREATE INDEX contacts_email ON contacts (email);
COMMIT;
