"""The words by which routes are recognised that are unsafe to request or are no pages: tables only.

The middleware requests routes that nobody has visited. It must not request one that logs
out, deletes, sends or pays. A word that names a page as often as an action is left out
of `ACTIONS`; in `ACTION_PAIRS` it counts only next to its object.
"""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

_UNDECOMPOSED_LETTERS: Final = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ı": "i", "æ": "ae", "Æ": "AE", "œ": "oe", "ß": "ss"}
)
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
"""Not all combining marks: those of Hindi and Japanese are letters."""


def without_diacritics(text: str) -> str:
    """A text without diacritics, in its own case, so that words in camelCase can still be told apart."""
    if text.isascii():
        return text
    return normalize("NFC", _ACCENTS.sub("", normalize("NFKD", text.translate(_UNDECOMPOSED_LETTERS))))


def words(*texts: str) -> frozenset[str]:
    """The words of a table, as they are compared: without diacritics, in small letters."""
    return frozenset(without_diacritics(" ".join(texts)).casefold().split())


def pairs(*texts: str) -> list[tuple[frozenset[str], frozenset[str]]]:
    """The verbs and the objects of a table whose texts have a colon between the two."""
    return [(words(verbs), words(objects)) for verbs, _, objects in (text.partition(":") for text in texts)]


ACTIONS: Final = words(
    # log out
    """
    optout poweroff selfdestruct expire halt abort quit suspend hibernate kick login-as become-admin make-admin
    abmelden ausloggen abmeldung deconnexion deconnecter salir desconectar desconectarse sair desconexao esci
    disconnetti disconnettersi uitloggen afmelden wyloguj wylogowanie wyloguj-sie loggaut logg-ut logud logut
    kirjaudu-ulos uloskirjautuminen odhlasit odhlaseni terminar-sesion cikis cikis-yap oturumu-kapat вихід вийти
    выход выйти
    """,
    # delete
    """
    nuke obliterate forget ban unban evict expunge loeschen loschen entfernen vernichten supprimer effacer retirer
    borrar eliminar quitar suprimir apagar excluir remover cancella cancellare elimina eliminare rimuovi rimuovere
    verwijderen verwijder usun usuwanie skasuj radera tabort slett fjern slet poista smazat odstranit vymazat sil
    kaldir удалить удаление стереть видалити стерти
    """,
    # empty
    """
    leeren zuruecksetzen zurucksetzen vider reinitialiser vaciar limpiar restablecer esvaziar limpar redefinir
    svuota svuotare ripristina azzera leegmaken legen wyczysc oproznij zresetuj rensa tomma nollaa tyhjenna
    vyprazdnit vycistit bosalt temizle sifirla очистить сбросить очистити скинути
    """,
    # send
    """
    notify broadcast sms tweet resubscribe unsubscribe senden versenden abschicken verschicken benachrichtigen
    abbestellen envoyer expedier notifier desabonner desinscrire desabonnement enviar notificar
    cancelar-suscripcion invia inviare spedisci notifica disiscriviti versturen verzenden uitschrijven wyslij
    wypisz skicka avregistrera avsluta-prenumeration send-inn afmeld laheta odeslat odhlasit-odber gonder
    отправить отписаться надіслати відписатися
    """,
    # pay
    """
    donate redeem claim refund charge withdraw transfer payout purchase order bezahlen bestellen ueberweisen
    uberweisen stornieren payer commander rembourser annuler virer pagar pedir reembolsar cancelar transferir paga
    pagare ordina rimborsa annulla betalen annuleren terugbetalen zaplac zamow anuluj betala bestall avbryt betal
    bestil bestill annuller avbestill maksa tilaa peruuta zaplatit objednat zrusit satin-al iptal оплатить
    заказать отменить вернуть оплатити замовити скасувати
    """,
    # switch
    """
    unlock disarm aktivieren deaktivieren einschalten ausschalten oeffnen offnen schliessen sperren entsperren
    activer desactiver allumer eteindre ouvrir fermer activar desactivar encender abrir cerrar ativar desativar
    ligar desligar fechar attiva disattiva accendi spegni apri chiudi activeren deactiveren inschakelen
    uitschakelen openen sluiten aktywuj dezaktywuj wlacz wylacz otworz zamknij aktivera inaktivera oppna aktiver
    deaktiver aktivoi sulje avaa zapnout vypnout otevrit zavrit etkinlestir включить выключить открыть закрыть
    увімкнути вимкнути відкрити закрити
    """,
    # run
    """
    populate pull deploy redeploy undeploy update scan rescan scrape crawl compute recompute recalculate crash
    panic seed warmup provision rerun reprocess selfupdate selfupgrade synchronize synchronise autodeploy
    ausfuehren ausfuhren aktualisieren synchronisieren importieren exportieren executer actualiser synchroniser
    importer exporter ejecutar actualizar sincronizar importar exportar executar atualizar esegui aggiorna
    sincronizza importa esporta uitvoeren bijwerken synchroniseren importeren exporteren uruchom aktualizuj
    synchronizuj importuj eksportuj uppdatera opdater oppdater synkronisera paivita suorita spustit aktualizovat
    guncelle calistir запустить обновить запустити оновити
    """,
    # change
    """
    accept decline reject approve unarchive unblock speichern bestaetigen bestatigen ablehnen annehmen enregistrer
    confirmer accepter refuser guardar confirmar aceptar rechazar salvar aceitar rejeitar salva conferma accetta
    rifiuta opslaan bevestigen accepteren weigeren zapisz potwierdz zaakceptuj odrzuc bekrafta godkann bekraeft
    lagre bekreft tallenna vahvista ulozit potvrdit kaydet onayla сохранить подтвердить принять отклонить зберегти
    підтвердити grant-access go-live maintenance-mode check-in decrement
    """,
)
"""Verbs that are an action as a whole segment, and next to one of `ACTION_OBJECTS`: /salir, /panier/vider."""

ACTION_OBJECTS: Final = words("""
    admin admins customers members subscribers ticket trash account accounts all alle basket cache caches cart cookies
    data database db email emails everyone everything file files keys mail mails me message messages newsletter now
    notification notifications order orders password profile queue queues session sessions subscription token tokens
    user users daten datenbank bestellung konto mein meinkonto nachricht nachrichten warenkorb zwischenspeicher
    mitteilungen benutzer commande commandes compte panier donnees utilisateur utilisateurs tout tous carrito cesta
    cuenta datos mensaje mensajes pedido pedidos sesion suscripcion todo todos usuario usuarios carrinho conta dados
    mensagem sessao assinatura tudo carrello conto dati messaggi ordine ordini sessione tutto utente bestelling
    gegevens gebruiker winkelwagen winkelmand alles berichten dane koszyk zamowienie konta wiadomosc uzytkownik
    wszystko varukorg kundvagn meddelande anvandare handlekurv handlevogn kurv bruger bruker tili kori ostoskori kosik
    ucet objednavka hesap sepet siparis mesaj корзину корзина корзины аккаунт заказ учетную запись сообщение кошик
    акаунт замовлення api app backup backups self site
""")
"""Objects of `ACTIONS`."""

FILLER_WORDS: Final = words("""
    my the a an as your mon ma mes le la les el los las mi il lo o os meu mein meine den das die der de het min mit
    moj sie se to from
""")

ACTION_PAIRS: Final = pairs(
    # administration of a site
    """
    ban block bust cancel change create demote disable enable fetch kick make post process promote push quit exit
    regenerate reopen resolve run send setup start stop suspend verify: admin admins all app backup backups cache
    database db email emails facebook indexes items job jobs keys maintenance migration migrations orders password
    payments process queue reports schema server service session subscribers subscription tables task tasks ticket
    tokens trial twitter user users worker workers
    """,
    "empty clear: basket bin cart inbox trash wishlist",
    # data and jobs
    """
    build calculate close compile drain dump empty expire fetch index init initialise initialize load populate poll
    process recalc recreate reissue roll rotate rotates run seed sync unlock warm wipe: all cache caches carts cart
    crawler cron crons database databases db dbs everything fixtures indexes items job jobs index key keys mailbox
    now queue queues schema search-index secrets sitemap sitemaps task tasks token tokens worker workers basket data
    """,
    "place submit: order orders",
    "buy purchase: all it now",
    # messages to many
    "alert announce email mail message ping remind text: all customers everybody everyone members subscribers users",
    # messages marked as read
    "mark read: all everything message messages notification notifications read seen unread mail mails inbox",
    # home automation
    """
    open close on off lock unlock arm disarm start stop toggle: alarm all blind blinds boiler camera door engine fan
    fans garage gate gates heater heating lamp lamps led leds light lights lock locks motor motors outlet plug power
    pump pumps relay relays shutter shutters siren sprinkler switch valve valves window windows
    """,
    # secrets and locks
    """
    new create generate issue acquire release rotate renew take steal: apikey apikeys api key keys lock locks mutex
    secret secrets token tokens
    """,
    # consent, accounts
    """
    accept agree decline close forget leave suspend freeze lock: account accounts all cookies consent invitation
    invite license licence me membership terms tos user users
    """,
    # the program itself
    "self git app server code: deploy destruct pull push reset restart update upgrade reload",
    # periods, certificates
    "archive close renew: old month year day period books cert certs certificate certificates",
    # settings of a visitor
    "set change: language lang locale currency theme timezone",
)
"""Verbs that are an action only with one of these objects, in one segment or two: /rotate-keys, /door/open."""

LAST_ACTIONS: Final = words("on off leave close forget")
"""Words that are an action if they are the last of several segments: /kitchen/off, /team/leave."""

WHOLE_ACTIONS: Final = words("buy dispatch grant lock ship wake")
"""Words that are an action as a whole segment only: /tickets/buy, /device/wake."""

NOUN_VERBS: Final = words(
    "alert block build change email index load mail message order poll push setup start self git app server code text"
)
"""Verbs that are nouns if they come last: /users/email, /account/order."""

UNSPACED_ACTIONS: Final = words("""
    ログアウト ログオフ サインアウト 削除 消去 空にする リセット 送信 通知する 配信停止 退会 支払う 注文する
    購入する 有効化 無効化 更新する 実行 同期 キャンセル 退出 登出 注销 註銷 删除 刪除 移除 清空 清除
    重置 发送 發送 取消订阅 取消訂閱 支付 付款 下单 提交订单 启用 禁用 停用 关闭账户 执行 運行 运行 同步
    部署 重启 取消订单 로그아웃 삭제 제거 비우기 초기화 보내기 전송 구독취소 결제하기 주문하기 탈퇴 활성화
    비활성화 실행 동기화 تسجيلالخروج تسجيلخروج سجلالخروج حذف مسح إفراغ
    إرسال إلغاءالاشتراك ادفع تفعيل تعطيل تشغيل مزامنة लॉगआउट
    साइनआउट लॉगऑफ हटाएं हटाएँ मिटाएं मिटाएँ खालीकरें भेजें
    भुगतानकरें सदस्यतारद्द रीसेट निष्क्रिय सक्रियकरें
""")
"""Verbs of languages that join words or write them without spaces: anywhere in a segment, without its separators."""

TITLE_PATTERN: Final = re.compile("如何|怎么|怎樣|方法|仕方|やり方|とは|指南|教程|방법|안내|كيف|कैसे")
"""Words that show a title of a text in these languages: "how to", "method", "guide"."""

MAX_UNSPACED_CHARS: Final = 12
"""Maximum length of a segment that is searched for such a verb. A longer segment counts as a title."""

STRONG_ACTIONS: Final = words(
    "ack acknowledge cleanup deactivate delete demote destroy disconnect dismiss erase gc impersonate increment "
    "invalidate kill killall logoff logout migrate purge prune reboot reindex reload remove rename requeue resend "
    "reset restart retry revoke rollback shutdown signoff signout terminate toggle truncate unfollow unlike unlink "
    "unpublish unsubscribe vacuum webhook webhooks wipe abmelden ausloggen deconnexion loeschen supprimer eliminar "
    "borrar"
)
"""Words that are an action if they are the first or the last word of a name."""

SEGMENT_ACTIONS: Final = words(
    "activate approve backup cancel checkout clear confirm cron crons debug disable downvote drop enable exec "
    "execute export flush follow generate import like pay publish rebuild refresh regenerate reject restore run "
    "send stop submit switch sync test trigger upload upvote vote"
)
"""Words that are an action if they are a whole segment, or the first word of a snake_case or camelCase name."""

DEEP_ACTIONS: Final = words("add callback create install print start subscribe update upgrade")
"""The same, except for a path of one segment, which is a page: /start, /install, /subscribe."""

ACTION_ROOTS: Final = words("cron crons job task webhook webhooks hooks")
"""Segments below which everything is an action."""

ARTICLE_ROOTS: Final = words(
    "about academy article articles blog doc docs documentation faq guide guides handbook help kb learn manual "
    "news reference support tutorial tutorials wiki "
    "actualites aide aiuto ajuda anleitung ayuda guia guida handbuch hilfe hjalp magazin magazine noticias pomoc "
    "ratgeber"
)
"""Segments below which paths are articles, even if they are named like actions."""

TOPIC_ROOTS: Final = words("features industries integrations platform solutions use-cases")
"""Segments below which a verb that is also a noun names a product or topic: /solutions/compute."""

TITLE_WORDS: Final = words(
    "how why what when where who which can should is are best top "
    "wie warum was comment pourquoi como porque come perche hoe waarom jak hur hvordan miten nasil как почему як"
)
"""First words of titles."""

PROGRAM_OBJECTS: Final = words(
    "account accounts all backup cache caches cart cookies data database db email emails everything feed file "
    "files history index indexes job jobs log logs mail mails message messages newsletter notification "
    "notifications now order orders password queue queues server session sessions settings task tasks token "
    "tokens user users worker workers"
)
"""Objects of programs. A verb in kebab-case is an action if one of them follows."""

VIEW_SUFFIXES: Final = words("view handler endpoint route controller api get")
"""Last words in the names of views that say nothing."""

PAGE_WORDS: Final = words("form guide home index info list page view")
"""Last words in the names of views that show a page: `start_page`."""

ACTION_PHRASES: Final = re.compile(
    r"(?<![a-z])(?:(?:log|sign)[-_ ]?(?:me[-_ ])?(?:out|off)|gc|add[-_]to[-_](?:cart|basket|bag|wishlist|favou?rites)"
    r"|clean[-_]up|tear[-_]down|shut[-_]down|cerrar[-_]sesion|opt[-_]out|power[-_]?off"
    r"|(?:turn|switch)[-_](?:on|off)|forget[-_]me(?![-_]not)|mark[-_](?:[a-z]+[-_])*(?:un)?(?:read|seen)"
    r"|git[-_](?:pull|push|fetch)|accept[-_](?:terms|cookies|all)|encerrar[-_]sessao|terminar[-_]sessao"
    r"|se[-_]deconnecter|fermer[-_](?:la[-_])?session|cerrar[-_]cuenta)(?![a-z])",
    re.IGNORECASE,
)
"""Actions of several words."""

API_ROOTS: Final = words(
    "ajax ajax-api api apis graphiql graphql grpc json json-rpc jsonrpc odata openapi rest rpc soap socket.io "
    "swagger swagger-ui sse trpc webhook webhooks websocket websockets ws xmlrpc xml-rpc"
)
"""First segments of paths for programs; so is a version, as in /v1/users."""

VERSION: Final = re.compile(r"v\d+(\.\d+)*(alpha\d*|beta\d*)?", re.IGNORECASE)

OPERATIONS_ROOTS: Final = words(
    "actuator alive debug-toolbar health heartbeat metrics ping prometheus ready server-info server-status "
    "stats.json status up version"
)
"""First segments of paths for the operators of the site. Below /status or /version there may be pages."""

OPERATIONS_ONLY_ROOTS: Final = words("actuator debug-toolbar")
"""First segments below which every path is for the operators of the site."""

HEALTH_CHECK_SEGMENTS: Final = words(
    "health-check healthcheck health_check healthz livez liveness readyz readiness startupz server-status phpinfo"
)
"""Segments that show a health check, or another path for operators, at any position."""

HEALTH_CHECK_LEAVES: Final = words("alive check db health heartbeat live ok ping ready startup")
"""Last segments of health checks if the first segment is for programs: /api/health, /_ah/health, /health/live."""

HEALTH_CHECK_VIEWS: Final = words(
    "healthcheck healthchecks healthz livez liveness livenessprobe readyz readiness readinessprobe startupz"
)
"""Names of views of health checks, without separators between words."""

MACHINE_ROOTS: Final = words("health internal ops system")
"""First segments of paths for the operators of the site, as those of `API_ROOTS` are for programs."""

OPERATIONS_PARENTS: Final = words(
    "admin app backend common core infra internal main misc monitor monitoring ops probe probes server service site "
    "sys system util utils web"
)
"""Segments below which one of `NESTED_HEALTH_CHECK_LEAVES` is a health check: /misc/ping, /server/metrics."""

NESTED_HEALTH_CHECK_LEAVES: Final = words("alive health heartbeat metrics ping prometheus up uptime")

ERROR_NAMES: Final = re.compile(
    r"[45]\d\d|(?:server|internalserver|sentry)?errors?|(?:debug|test)?sentry(?:debug|test)?|(?:error|exception|fail|raise)"
    r"(?:test)?|(?:raise|throw|trigger|test|force|cause)(?:an?)?(?:error|exception)|divisionbyzero|zerodivision"
)
"""Last segments that show an error, or cause one to test how it is reported: /500, /sentry-debug."""

FLOW_ENDS: Final = words("closed done inactive posted sent submitted")
"""Last words of the paths that a form leads to: /contact/sent, /accounts/login_link_sent."""

MAX_FLOW_WORDS: Final = 3
"""Words of such a segment, at most. A longer one is a title."""

FILE_NAME: Final = re.compile(r"\.(?:aspx?|html?|json|php|txt)$")
