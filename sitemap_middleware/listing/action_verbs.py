"""Verbs of actions, by kind and language: tables, and their look-up.

The middleware requests routes that nobody has visited. It must not request one that logs
out, deletes, sends or pays. A word that names a page as often as an action is left out
of `ACTIONS`; in `ACTION_PAIRS` it counts only next to its object.

Words are written without diacritics, in small letters: they are compared with `without_diacritics` text.
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

_SEPARATORS: Final = re.compile(r"[\s\-_.~+]+")


def without_diacritics(text: str) -> str:
    """A text without diacritics, in its own case, so that words in camelCase can still be told apart."""
    if text.isascii():
        return text
    return normalize("NFC", _ACCENTS.sub("", normalize("NFKD", text.translate(_UNDECOMPOSED_LETTERS))))


def _word_set(text: str) -> frozenset[str]:
    """The words of a table, as they are compared."""
    return frozenset(without_diacritics(text).casefold().split())


ACTIONS: Final = {
    "log out": """
        optout poweroff selfdestruct expire halt abort quit suspend hibernate kick login-as become-admin make-admin
        abmelden ausloggen abmeldung deconnexion deconnecter salir desconectar desconectarse sair desconexao esci
        disconnetti disconnettersi uitloggen afmelden wyloguj wylogowanie wyloguj-sie loggaut logg-ut logud logut
        kirjaudu-ulos uloskirjautuminen odhlasit odhlaseni terminar-sesion cikis cikis-yap oturumu-kapat вихід вийти
        выход выйти
    """,
    "delete": """
        nuke obliterate forget ban unban evict expunge loeschen loschen entfernen vernichten supprimer effacer retirer
        borrar eliminar quitar suprimir apagar excluir remover cancella cancellare elimina eliminare rimuovi rimuovere
        verwijderen verwijder usun usuwanie skasuj radera tabort slett fjern slet poista smazat odstranit vymazat sil
        kaldir удалить удаление стереть видалити стерти
    """,
    "empty": """
        leeren zuruecksetzen zurucksetzen vider reinitialiser vaciar limpiar restablecer esvaziar limpar redefinir
        svuota svuotare ripristina azzera leegmaken legen wyczysc oproznij zresetuj rensa tomma nollaa tyhjenna
        vyprazdnit vycistit bosalt temizle sifirla очистить сбросить очистити скинути
    """,
    "send": """
        notify broadcast sms tweet resubscribe unsubscribe senden versenden abschicken verschicken benachrichtigen
        abbestellen envoyer expedier notifier desabonner desinscrire desabonnement enviar notificar
        cancelar-suscripcion invia inviare spedisci notifica disiscriviti versturen verzenden uitschrijven wyslij
        wypisz skicka avregistrera avsluta-prenumeration send-inn afmeld laheta odeslat odhlasit-odber gonder
        отправить отписаться надіслати відписатися
    """,
    "pay": """
        donate redeem claim refund charge withdraw transfer payout purchase order bezahlen bestellen ueberweisen
        uberweisen stornieren payer commander rembourser annuler virer pagar pedir reembolsar cancelar transferir paga
        pagare ordina rimborsa annulla betalen annuleren terugbetalen zaplac zamow anuluj betala bestall avbryt betal
        bestil bestill annuller avbestill maksa tilaa peruuta zaplatit objednat zrusit satin-al iptal оплатить
        заказать отменить вернуть оплатити замовити скасувати
    """,
    "switch": """
        unlock disarm aktivieren deaktivieren einschalten ausschalten oeffnen offnen schliessen sperren entsperren
        activer desactiver allumer eteindre ouvrir fermer activar desactivar encender abrir cerrar ativar desativar
        ligar desligar fechar attiva disattiva accendi spegni apri chiudi activeren deactiveren inschakelen
        uitschakelen openen sluiten aktywuj dezaktywuj wlacz wylacz otworz zamknij aktivera inaktivera oppna aktiver
        deaktiver aktivoi sulje avaa zapnout vypnout otevrit zavrit etkinlestir включить выключить открыть закрыть
        увімкнути вимкнути відкрити закрити
    """,
    "run": """
        populate pull deploy redeploy undeploy update scan rescan scrape crawl compute recompute recalculate crash
        panic seed warmup provision rerun reprocess selfupdate selfupgrade synchronize synchronise autodeploy
        ausfuehren ausfuhren aktualisieren synchronisieren importieren exportieren executer actualiser synchroniser
        importer exporter ejecutar actualizar sincronizar importar exportar executar atualizar esegui aggiorna
        sincronizza importa esporta uitvoeren bijwerken synchroniseren importeren exporteren uruchom aktualizuj
        synchronizuj importuj eksportuj uppdatera opdater oppdater synkronisera paivita suorita spustit aktualizovat
        guncelle calistir запустить обновить запустити оновити
    """,
    "change": """
        accept decline reject approve unarchive unblock speichern bestaetigen bestatigen ablehnen annehmen enregistrer
        confirmer accepter refuser guardar confirmar aceptar rechazar salvar aceitar rejeitar salva conferma accetta
        rifiuta opslaan bevestigen accepteren weigeren zapisz potwierdz zaakceptuj odrzuc bekrafta godkann bekraeft
        lagre bekreft tallenna vahvista ulozit potvrdit kaydet onayla сохранить подтвердить принять отклонить зберегти
        підтвердити grant-access go-live maintenance-mode check-in decrement
    """,
}
"""Verbs that are an action as a whole segment, and next to one of `ACTION_OBJECTS`.

Examples: /salir, /panier/vider, /cuenta-eliminar.
"""

UNSPACED_ACTIONS: Final = """
    ログアウト ログオフ サインアウト 削除 消去 空にする リセット 送信 通知する 配信停止 退会 支払う 注文する
    購入する 有効化 無効化 更新する 実行 同期 キャンセル 退出 登出 注销 註銷 删除 刪除 移除 清空 清除
    重置 发送 發送 取消订阅 取消訂閱 支付 付款 下单 提交订单 启用 禁用 停用 关闭账户 执行 運行 运行 同步
    部署 重启 取消订单 로그아웃 삭제 제거 비우기 초기화 보내기 전송 구독취소 결제하기 주문하기 탈퇴 활성화
    비활성화 실행 동기화 تسجيلالخروج تسجيلخروج سجلالخروج حذف مسح إفراغ
    إرسال إلغاءالاشتراك ادفع تفعيل تعطيل تشغيل مزامنة लॉगआउट
    साइनआउट लॉगऑफ हटाएं हटाएँ मिटाएं मिटाएँ खालीकरें भेजें
    भुगतानकरें सदस्यतारद्द रीसेट निष्क्रिय सक्रियकरें
"""
"""Verbs of languages that join words or write them without spaces. They are looked for anywhere in a segment,
without its separators."""

TITLE_PATTERN: Final = re.compile("如何|怎么|怎樣|方法|仕方|やり方|とは|指南|教程|방법|안내|كيف|कैसे")
"""Words that show a title of a text in these languages: "how to", "method", "guide"."""

MAX_UNSPACED_CHARS: Final = 12
"""Maximum length of a segment that is searched for such a verb. A longer segment counts as a title."""

ACTION_OBJECTS: Final = """
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
"""
"""Objects of actions."""

FILLER_WORDS: Final = """
    my the a an as your mon ma mes le la les el los las mi il lo o os meu mein meine den das die der de het min mit
    moj sie se to from
"""

ACTION_PAIRS: Final = (
    # administration of a site
    (
        """
        ban block bust cancel change create demote disable enable fetch kick make post process promote push quit exit
        regenerate reopen resolve run send setup start stop suspend verify
        """,
        """
        admin admins all app backup backups cache database db email emails facebook indexes items job jobs keys
        maintenance migration migrations orders password payments process queue reports schema server service session
        subscribers subscription tables task tasks ticket tokens trial twitter user users worker workers
        """,
    ),
    ("empty clear", "basket bin cart inbox trash wishlist"),
    # data and jobs
    (
        """
        build calculate close compile drain dump empty expire fetch index init initialise initialize load populate
        poll process recalc recreate reissue roll rotate rotates run seed sync unlock warm wipe
        """,
        """
        all cache caches carts cart crawler cron crons database databases db dbs everything fixtures indexes items job
        jobs index key keys mailbox now queue queues schema search-index secrets sitemap sitemaps task tasks token
        tokens worker workers basket data
        """,
    ),
    ("place submit", "order orders"),
    ("buy purchase", "all it now"),
    # messages to many
    (
        "alert announce email mail message ping remind text",
        "all customers everybody everyone members subscribers users",
    ),
    # messages marked as read
    ("mark read", "all everything message messages notification notifications read seen unread mail mails inbox"),
    # home automation
    (
        "open close on off lock unlock arm disarm start stop toggle",
        """
        alarm all blind blinds boiler camera door engine fan fans garage gate gates heater heating lamp lamps led leds
        light lights lock locks motor motors outlet plug power pump pumps relay relays shutter shutters siren
        sprinkler switch valve valves window windows
        """,
    ),
    # secrets and locks
    (
        "new create generate issue acquire release rotate renew take steal",
        "apikey apikeys api key keys lock locks mutex secret secrets token tokens",
    ),
    # consent, accounts
    (
        "accept agree decline close forget leave suspend freeze lock",
        "account accounts all cookies consent invitation invite license licence me membership terms tos user users",
    ),
    # the program itself
    ("self git app server code", "deploy destruct pull push reset restart update upgrade reload"),
    # periods, certificates
    ("archive close renew", "old month year day period books cert certs certificate certificates"),
    # settings of a visitor
    ("set change", "language lang locale currency theme timezone"),
)
"""Verbs that are an action only with one of these objects, in one segment or two: /rotate-keys, /door/open."""

NESTED_ACTIONS: Final = _word_set("on off leave close forget")
"""Words that are an action if they are the last of several segments: /kitchen/off, /team/leave."""

WHOLE_ACTIONS: Final = _word_set("buy dispatch grant lock ship wake")
"""Words that are an action as a whole segment only: /tickets/buy, /device/wake."""

NOUN_VERBS: Final = _word_set(
    "alert block build change email index load mail message order poll push setup start self git app server code text"
)
"""Verbs that are nouns if they come last: /users/email, /account/order."""

_ACTION_SET: Final = frozenset[str]().union(*(_word_set(one) for one in ACTIONS.values()))
_JOINED_ACTIONS: Final = frozenset(_SEPARATORS.sub("", one) for one in _ACTION_SET)
_UNSPACED_ACTION_LIST: Final = tuple(
    sorted({_SEPARATORS.sub("", without_diacritics(word).casefold()) for word in UNSPACED_ACTIONS.split()})
)
_ACTION_OBJECT_SET: Final = _word_set(ACTION_OBJECTS)
_FILLER_WORD_SET: Final = _word_set(FILLER_WORDS)
_ACTION_PAIR_SETS: Final = tuple((_word_set(verbs), _word_set(objects)) for verbs, objects in ACTION_PAIRS)


def is_action(words: list[str]) -> bool:
    """Whether the words of a segment name an action: a verb, or a verb and its object. Expects lower case."""
    joined = "".join(words)
    if len(words) == 1 or joined in _JOINED_ACTIONS:
        return joined in _JOINED_ACTIONS or joined in WHOLE_ACTIONS
    others = [word for word in words if word not in _FILLER_WORD_SET]
    verbs = [word for word in others if word in _ACTION_SET]
    if verbs and len(others) > 1 and all(word in _ACTION_OBJECT_SET or word in verbs for word in others):
        return others[0] in verbs or (others[-1] in verbs and others[-1] not in NOUN_VERBS)
    return is_action_pair(others)


def is_action_pair(words: list[str]) -> bool:
    """Whether words are a verb and its object, in either order, and nothing else."""
    if len(words) < 2:
        return False
    first, last = words[0], words[-1]
    for verbs, objects in _ACTION_PAIR_SETS:
        if first in verbs and all(word in objects for word in words[1:]):
            return True
        if last in verbs and last not in NOUN_VERBS and all(word in objects for word in words[:-1]):
            return True
    return False


def unspaced_action(segment: str) -> bool:
    """Whether a segment in a script without spaces contains the verb of an action. Expects lower case."""
    if segment.isascii():
        return False
    joined = _SEPARATORS.sub("", segment)
    if len(joined) > MAX_UNSPACED_CHARS or TITLE_PATTERN.search(joined):
        return False
    return any(verb in joined for verb in _UNSPACED_ACTION_LIST)
